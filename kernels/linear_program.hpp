// A linear program, solved by the simplex method of GLPK.
//   minimise  sum_j cost_j x_j   with   lower_j <= x_j <= upper_j,   lower_k <= sum_j a_kj x_j <=
//   upper_k
// The same program gives the same solution, to the last bit: GLPK draws nothing at random. Of
// several optimal vertices it is one that the callers must not rely on. Bounds may be infinite;
// everything else is finite. Scale variables and rows so that values around 1 matter: what holds to
// 1e-12 passes for equal.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <limits>
#include <vector>

namespace shoal::kernels {

inline constexpr double unbounded = std::numeric_limits<double>::infinity();

struct linear_program {
  struct variable {
    double cost = 0;
    double lower = 0;
    double upper = unbounded;
  };
  struct term {
    std::size_t variable = 0;
    double coefficient = 0;
  };
  struct row {
    std::vector<term> terms; // each variable at most once
    double lower = -unbounded;
    double upper = unbounded;
  };

  std::vector<variable> variables;
  std::vector<row> rows;
};

struct linear_solution {
  double objective = 0;
  std::vector<double> values; // of the variables
  /// By how much the objective grows with the bound of a row that holds with equality; 0 for rows
  /// that do not bind.
  std::vector<double> duals;
  /// The vertex, for programs that differ little; GLPK's words, of the rows and then of the
  /// variables.
  std::vector<int> row_states, variable_states;
};

/// Errors: no values satisfy the rows, none is best, or the numbers are beyond what doubles can
/// tell. `near` is the solution of a program with the same variables, and with rows that this one
/// has too, perhaps with others after them: the search begins there and is short if the optimum is
/// near. It is a vertex of this program all the same. Requires: at least one variable and one row;
/// terms name variables that exist. Thread safety: any thread, at any time. GLPK's state belongs to
/// the thread and is released before the return; where a build of GLPK has one state for all
/// threads, callers wait for each other.
result<linear_solution> minimise(const linear_program& program,
                                 const linear_solution* near = nullptr);

} // namespace shoal::kernels
