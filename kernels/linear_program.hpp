// A linear program, solved by the simplex method of GLPK.
//   minimise  sum_j cost_j x_j   with   lower_j <= x_j <= upper_j,   lower_k <= sum_j a_kj x_j <=
//   upper_k
// The same program gives the same solution, to the last bit: GLPK draws nothing at random. If
// several vertices are optimal, the solution is one of them, and callers must not rely on which.
// Bounds may be infinite; everything else is finite. Scale variables and rows so that values around
// 1 matter: values that differ by 1e-12 pass for equal.
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
  std::vector<double> values; // one for each variable
  /// The growth of the objective with the bound of a row that holds with equality; 0 for rows that
  /// do not bind.
  std::vector<double> duals;
  /// The vertex in GLPK's terms, for the rows and for the variables: a start for programs that
  /// differ little.
  std::vector<int> row_states, variable_states;
};

/// Errors: no values satisfy the rows, no values are best, or the numbers are beyond the precision
/// of doubles.
/// `near` is the solution of a program with the same variables, whose rows this program has too,
/// perhaps with others after them. The search begins there and is short if the optimum is near.
/// Requires: at least one variable and one row; terms name variables that exist.
/// Thread safety: any thread, at any time. GLPK's state belongs to the thread and is released
/// before the return. Where a build of GLPK has one state for all threads, callers wait for each
/// other.
result<linear_solution> minimise(const linear_program& program,
                                 const linear_solution* near = nullptr);

} // namespace shoal::kernels
