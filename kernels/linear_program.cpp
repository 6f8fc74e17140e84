#include "kernels/linear_program.hpp"

#include "kernels/base/check.hpp"

#include <glpk.h>

#include <cmath>
#include <csetjmp>
#include <mutex>

namespace shoal::kernels {

namespace {

int bounds_kind(double lower, double upper) {
  if (lower == upper) return GLP_FX;
  if (std::isinf(lower)) return std::isinf(upper) ? GLP_FR : GLP_UP;
  return std::isinf(upper) ? GLP_LO : GLP_DB;
}

/// The terms as GLPK takes them: arrays with indices from 1.
struct triplets {
  std::vector<int> rows{0}, columns{0};
  std::vector<double> values{0};
};

/// The answer of GLPK, or that it gave up. The type is plain, because it is written between setjmp
/// and longjmp.
enum class outcome { optimal, infeasible, unbounded, no_answer };

int say_nothing(void*, const char*) {
  return 1;
}

void give_up(void* where) {
  std::longjmp(*static_cast<std::jmp_buf*>(where), 1);
}

outcome outcome_of(int error, int status) {
  if (error != 0 && error != GLP_EITLIM) return outcome::no_answer;
  if (status == GLP_OPT) return outcome::optimal;
  if (status == GLP_NOFEAS) return outcome::infeasible;
  return status == GLP_UNBND ? outcome::unbounded : outcome::no_answer;
}

/// A failed assertion inside GLPK would end the process, and the numbers may come from a peer. The
/// hook jumps back here instead. The frames that it leaves hold no object with a destructor.
outcome solve(const linear_program& program, const triplets& matrix, const linear_solution* near,
              linear_solution* out) {
  std::jmp_buf back;
  if (setjmp(back) != 0) return outcome::no_answer;
  glp_error_hook(give_up, &back);
  glp_term_hook(say_nothing,
                nullptr); // glp_term_out(GLP_OFF) would let errors through to standard output
  glp_prob* problem = glp_create_prob();
  glp_set_obj_dir(problem, GLP_MIN);
  const int columns = static_cast<int>(program.variables.size()),
            rows = static_cast<int>(program.rows.size());
  glp_add_cols(problem, columns);
  glp_add_rows(problem, rows);
  for (int j = 0; j < columns; ++j) {
    const auto& variable = program.variables[static_cast<std::size_t>(j)];
    glp_set_obj_coef(problem, j + 1, variable.cost);
    glp_set_col_bnds(problem, j + 1, bounds_kind(variable.lower, variable.upper), variable.lower,
                     variable.upper);
  }
  for (int k = 0; k < rows; ++k) {
    const auto& row = program.rows[static_cast<std::size_t>(k)];
    glp_set_row_bnds(problem, k + 1, bounds_kind(row.lower, row.upper), row.lower, row.upper);
  }
  glp_load_matrix(problem, static_cast<int>(matrix.values.size()) - 1, matrix.rows.data(),
                  matrix.columns.data(), matrix.values.data());

  glp_scale_prob(problem, GLP_SF_AUTO);
  glp_smcp options;
  glp_init_smcp(&options);
  options.msg_lev = GLP_MSG_OFF;
  options.tol_bnd = 1e-12;
  options.tol_dj = 1e-10;
  options.it_lim = 1000 + 50 * (rows + columns); // a run needs a few times rows + columns
  auto said = outcome::no_answer;
  if (near != nullptr) {
    const int known = static_cast<int>(near->row_states.size());
    for (int j = 0; j < columns; ++j)
      glp_set_col_stat(problem, j + 1, near->variable_states[static_cast<std::size_t>(j)]);
    for (int k = 0; k < rows; ++k)
      glp_set_row_stat(problem, k + 1,
                       k < known ? near->row_states[static_cast<std::size_t>(k)] : GLP_BS);
    options.meth = GLP_DUALP; // new rows leave the old vertex optimal, but infeasible
    said = outcome_of(glp_simplex(problem, &options), glp_get_status(problem));
    if (said != outcome::optimal) said = outcome::no_answer; // an old vertex can be a bad start
  }
  // From scratch. The dual method often succeeds where degenerate vertices catch the primal one.
  for (const int method : {GLP_PRIMAL, GLP_DUAL}) {
    if (said != outcome::no_answer) break;
    options.meth = method;
    glp_adv_basis(problem, 0);
    said = outcome_of(glp_simplex(problem, &options), glp_get_status(problem));
  }
  if (said != outcome::optimal) return said;
  out->objective = glp_get_obj_val(problem);
  for (int j = 0; j < columns; ++j) {
    out->values[static_cast<std::size_t>(j)] = glp_get_col_prim(problem, j + 1);
    out->variable_states[static_cast<std::size_t>(j)] = glp_get_col_stat(problem, j + 1);
  }
  for (int k = 0; k < rows; ++k) {
    out->duals[static_cast<std::size_t>(k)] = glp_get_row_dual(problem, k + 1);
    out->row_states[static_cast<std::size_t>(k)] = glp_get_row_stat(problem, k + 1);
  }
  return said;
}

/// Releases GLPK's state and memory at the end of the call. In a build of GLPK with one state for
/// the process, it lets one call run at a time.
class environment {
public:
  environment() {
    static std::mutex only;
    if (glp_config("TLS") == nullptr) turn_ = std::unique_lock(only);
  }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
  ~environment() { glp_free_env(); }

private:
  std::unique_lock<std::mutex> turn_;
};

} // namespace

result<linear_solution> minimise(const linear_program& program, const linear_solution* near) {
  SHOAL_CHECK(!program.variables.empty() && !program.rows.empty(),
              "a linear program has variables and rows");
  triplets matrix;
  for (std::size_t k = 0; k < program.rows.size(); ++k) {
    const auto& row = program.rows[k];
    SHOAL_CHECK(row.lower <= row.upper, "the bounds of a row are in order");
    for (const auto& [variable, coefficient] : row.terms) {
      SHOAL_CHECK(variable < program.variables.size() && std::isfinite(coefficient),
                  "a term is a finite number of a variable");
      matrix.rows.push_back(static_cast<int>(k) + 1);
      matrix.columns.push_back(static_cast<int>(variable) + 1);
      matrix.values.push_back(coefficient);
    }
  }
  for (const auto& variable : program.variables)
    SHOAL_CHECK(variable.lower <= variable.upper && std::isfinite(variable.cost),
                "a variable has a range and a finite cost");

  if (near != nullptr)
    SHOAL_CHECK(near->variable_states.size() == program.variables.size() &&
                    near->row_states.size() <= program.rows.size(),
                "a near program has the same variables and no other rows");

  linear_solution out;
  out.values.resize(program.variables.size());
  out.variable_states.resize(program.variables.size());
  out.duals.resize(program.rows.size());
  out.row_states.resize(program.rows.size());
  const environment lasts_as_long_as_the_call;
  switch (solve(program, matrix, near, &out)) {
  case outcome::optimal:
    return out;
  case outcome::infeasible:
    return failure{"the linear program has no solution"};
  case outcome::unbounded:
    return failure{"the linear program has no smallest value"};
  default:
    return failure{"the linear program's numbers are too far apart to solve it"};
  }
}

} // namespace shoal::kernels
