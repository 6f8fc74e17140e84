#include "kernels/formula.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace shoal::kernels {

namespace {

constexpr int deepest = 64;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// A parser by recursive descent. After the first error every value is 0 and the parser reads no
/// more.
class reader {
public:
  reader(std::string_view text, const formula_values& values) : text_(text), values_(values) {}

  result<double> whole() {
    const double value = sum();
    if (error_.empty() && at_ != text_.size()) fail("an operator or the end is missing");
    if (!error_.empty()) return failure{error_};
    return value;
  }

private:
  double fail(const std::string& why) {
    if (error_.empty())
      error_ = "formula '" + std::string(text_) + "', at character " + std::to_string(at_ + 1) +
               ": " + why;
    return 0;
  }

  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool take(char c) {
    skip_space();
    if (!error_.empty() || at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    skip_space();
    return true;
  }

  double sum() {
    double value = product();
    for (;;) {
      if (take('+'))
        value += product();
      else if (take('-'))
        value -= product();
      else
        return value;
    }
  }

  double product() {
    double value = factor();
    for (;;) {
      if (take('*'))
        value *= factor();
      else if (take('/'))
        value /= factor();
      else
        return value;
    }
  }

  double factor() {
    skip_space();
    if (!error_.empty()) return 0;
    if (depth_ == deepest) return fail("parentheses are nested too deeply");
    ++depth_;
    const double value = take('(')              ? in_parentheses()
                         : at_ == text_.size()  ? fail("a value is missing")
                         : is_digit(text_[at_]) ? number()
                         : in_name(text_[at_])  ? named()
                                                : fail("a value is missing");
    --depth_;
    return value;
  }

  double in_parentheses() {
    const double value = sum();
    return take(')') ? value : fail("')' is missing");
  }

  double number() {
    double value = 0;
    const auto [end, status] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (status != std::errc()) return fail("no number");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  double named() {
    const auto begin = at_;
    while (at_ < text_.size() && (in_name(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const auto name = text_.substr(begin, at_ - begin);
    if (take('(')) return call(name);
    const auto found = values_.find(name);
    return found != values_.end() ? found->second
                                  : fail("'" + std::string(name) + "' has no value");
  }

  double call(std::string_view name) {
    std::vector<double> given;
    do given.push_back(sum());
    while (take(','));
    if (!take(')')) return fail("')' is missing");
    if (name == "if" && given.size() == 3) return given[0] > 0 ? given[1] : given[2];
    if (name == "max" && given.size() > 1) return *std::max_element(given.begin(), given.end());
    if (name == "ceil" && given.size() == 1) return std::ceil(given[0]);
    return fail("there is no function '" + std::string(name) + "' of " +
                std::to_string(given.size()) + " values");
  }

  std::string_view text_;
  const formula_values& values_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string error_;
};

} // namespace

result<double> evaluate(std::string_view formula, const formula_values& values) {
  return reader(formula, values).whole();
}

} // namespace shoal::kernels
