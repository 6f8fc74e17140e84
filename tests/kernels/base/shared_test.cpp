#include "kernels/base/shared.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace shoal;

namespace {

struct pair_of {
  std::string name;
  int number = 0;
  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, pair_of& x) {
    return f(x.name, x.number);
  }
};

struct reader {
  using result_type = std::string;
  static constexpr bool reads_state = true;
  std::string operator()(const std::string& name, int number) {
    return name + std::to_string(number);
  }
};

/// This inspector does not say that it only reads.
struct counter {
  using result_type = void;
  void operator()(std::string&, int& number) { ++number; }
};

} // namespace

TEST_CASE("a shared value is one object for all holders, and a part of it keeps it alive") {
  const shared<pair_of> nothing;
  CHECK(nothing->name.empty());
  shared<std::string> name;
  {
    const shared<pair_of> whole =
        pair_of{"a name that is longer than what a string holds by itself", 3};
    const auto copy = whole;
    CHECK(&*copy == &*whole);
    name = shared<std::string>(whole, whole->name);
    CHECK(&*name == &whole->name);
  }
  CHECK(*name == "a name that is longer than what a string holds by itself");
}

TEST_CASE("an inspector of a shared value sees the value, and changes a copy") {
  shared<pair_of> one = pair_of{"n", 3};
  const auto before = one;
  reader reads;
  CHECK(inspect(reads, one) == "n3");
  CHECK(&*one == &*before);
  counter counts;
  inspect(counts, one);
  CHECK(one->number == 4);
  CHECK(before->number == 3);
}
