#include "actors/all_messages.hpp"
#include "actors/message_registry.hpp"
#include "actors/messages.hpp"
#include "kernels/base/rng.hpp"
#include "tests/actors/support/message_filler.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/detail/serialized_size.hpp>
#include <caf/message.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <new>
#include <set>
#include <type_traits>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

// ---- the memory that this thread allocates ------------------------------------------------------

namespace {
thread_local std::uint64_t allocated_bytes = 0;
}

void* operator new(std::size_t size) {
  allocated_bytes += size;
  if (void* place = std::malloc(size == 0 ? 1 : size)) return place;
  throw std::bad_alloc();
}
void operator delete(void* place) noexcept {
  std::free(place);
}
void operator delete(void* place, std::size_t) noexcept {
  std::free(place);
}

// ---- messages of another program
// -----------------------------------------------------------------

namespace outside {

struct question {
  std::string text;
  std::vector<std::uint64_t> numbers;
  payload data;
  SHOAL_MESSAGE(question, x.text, x.numbers, x.data)
};
struct alarm {
  std::uint64_t token = 0;
  SHOAL_MESSAGE(alarm, x.token)
};
using messages = message_list<row<question, traffic::state, scope::remote>,
                              row<alarm, traffic::control, scope::local>>;

const bool added = (add_messages<messages>(), true);

} // namespace outside

namespace {

/// The messages of this library, and those that were added at the start of the program.
using known_messages = joined<all_messages, outside::messages>;

// ---- the true number of fields of a struct ------------------------------------------------------

struct anything {
  template <class T>
  operator T() const;
};

template <class T, class... Args>
consteval std::size_t field_count() {
  if constexpr (requires { T{Args{}..., anything{}}; })
    return field_count<T, Args..., anything>();
  else
    return sizeof...(Args);
}

// Compares field by field, without the serializer.
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, payload>) {
    return a.size() == b.size() &&
           std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin());
  } else if constexpr (is_leaf<T>) {
    return a == b;
  } else if constexpr (is_vector<T>::value) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!same(a[i], b[i])) return false;
    return true;
  } else {
    // Compares the k-th field of a with the k-th field of b.
    bool equal = true;
    std::size_t k = 0;
    each_field(const_cast<T&>(a), [&]<class Field>(Field& left) {
      std::size_t j = 0;
      each_field(const_cast<T&>(b), [&]<class Other>(Other& right) {
        if constexpr (std::is_same_v<Field, Other>) {
          if (j == k) equal = equal && same(left, right);
        }
        ++j;
      });
      ++k;
    });
    return equal;
  }
}

class nobody : public caf::event_based_actor {
public:
  nobody(caf::actor_config& config, host&) : caf::event_based_actor(config) {}
  caf::behavior make_behavior() override {
    return {[](const tick&) {}};
  }
};

struct fixture {
  mini_world world{1, true};
  caf::actor someone = world.spawn<nobody>(world.add_host("someone"));

  template <class T>
  std::vector<char> write(T& x) {
    std::vector<char> out;
    caf::binary_serializer sink{world.system(), out};
    REQUIRE_FALSE(sink(x));
    return out;
  }
};

} // namespace

TEST_CASE("every registered message type is among the tested ones") {
  caf::actor_system_config config;
  register_messages(config);
  std::set<std::string> registered, tested;
  for (const auto& [name, factory] : config.value_factories_by_name)
    if (name.rfind("shoal::", 0) == 0) registered.insert(name);
  for_each_type(known_messages{}, [&]<class T>(T*) {
    tested.insert(std::string{"shoal::"} + kind_of(caf::make_message(T{}).content()).name);
  });
  CHECK(registered == tested);
  CHECK(tested.count("shoal::?") == 0);
}

TEST_CASE("a row gives the name, the class and the scope of its type") {
  std::set<std::string> local;
  for_each_row(known_messages{}, [&]<class Row>() {
    const auto kind = kind_of(caf::make_message(typename Row::type{}).content());
    INFO(kind.name);
    CHECK(std::string{kind.name} == Row::type::message_name);
    CHECK(kind.kind == Row::counted_as);
    CHECK(traffic_of(kind.name) == Row::counted_as);
    CHECK(goes_between_hosts(std::string{"shoal::"} + kind.name) == (Row::scope == scope::remote));
    CHECK_FALSE(goes_between_hosts(kind.name));
    if (Row::scope == scope::local) local.insert(kind.name);
  });
  // If a local message were accepted from another host, that host could act in the name of this
  // host's actors.
  CHECK(local == std::set<std::string>{"alarm", "dialled", "found", "generate_request", "generated",
                                       "introduced", "layers_backward", "layers_done",
                                       "layers_forward", "link_lost", "lookup", "serve", "store",
                                       "tick", "withdraw", "work_done"});
}

TEST_CASE(
    "a list from outside the library is registered, counted and accepted like the library's own") {
  CHECK(outside::added);
  CHECK(traffic_of("question") == traffic::state);
  CHECK(goes_between_hosts("shoal::question"));
  CHECK_FALSE(goes_between_hosts("shoal::alarm"));
  CHECK_FALSE(goes_between_hosts("outside::question"));
  CHECK((kind_of(caf::make_message(outside::question{}).content()).bytes != nullptr));
}

TEST_CASE("a list that is added twice is known once") {
  const auto names = [] {
    caf::actor_system_config config;
    register_messages(config);
    return config.value_factories_by_name.size();
  };
  const auto before = names();
  add_messages<outside::messages>();
  add_messages<all_messages>();
  CHECK(names() == before);
}

TEST_CASE("a name that no list has must not cross hosts and counts as control") {
  for (const char* name :
       {"", "shoal::", "shoal::no_such_type", "no_such_type", "shoal::shoal::commit"}) {
    CHECK_FALSE(goes_between_hosts(name));
    CHECK(traffic_of(name) == traffic::control);
  }
}

TEST_CASE("bulk messages count in the class of their content, all others as control") {
  auto kind = [](auto x) { return kind_of(caf::make_message(x).content()).kind; };
  CHECK(kind(samples{}) == traffic::data);
  CHECK(kind(part_chunk{}) == traffic::averaging);
  CHECK(kind(reduced_chunk{}) == traffic::averaging);
  CHECK(kind(state_chunk{}) == traffic::state);
  CHECK(kind(state_offer{}) == traffic::state);
  CHECK(kind(commit{}) == traffic::control);
  CHECK(std::string{kind_of(caf::make_message(1).content()).name} == "?");
}

TEST_CASE("every field of a message is serialized") {
  for_each_type(known_messages{}, []<class T>(T*) {
    T x;
    std::size_t inspected = 0;
    each_field(x, [&](auto&) { ++inspected; });
    INFO(kind_of(caf::make_message(x).content()).name);
    // The members compute the boundaries from the roster.
    const std::size_t not_sent = std::is_same_v<T, group_begun> ? 1 : 0;
    CHECK(inspected + not_sent == field_count<T>());
  });
}

TEST_CASE("every message survives the serializer unchanged") {
  fixture f;
  auto random = stream(1, "messages_test");
  filler fill{random, f.someone};
  for_each_type(known_messages{}, [&]<class T>(T*) {
    for (int i = 0; i < 50; ++i) {
      T x;
      fill(x);
      const auto bytes = f.write(x);
      T y;
      caf::binary_deserializer source{f.world.system(), bytes};
      INFO(kind_of(caf::make_message(x).content()).name);
      REQUIRE_FALSE(source(y));
      CHECK(source.remaining() == 0);
      CHECK(same(x, y));
      // The same inside a caf::message, by its registered name.
      auto wrapped = caf::make_message(x);
      const auto as_message = f.write(wrapped);
      caf::message back;
      caf::binary_deserializer message_source{f.world.system(), as_message};
      REQUIRE_FALSE(message_source(back));
      REQUIRE(back.match_elements<T>());
      CHECK(same(x, back.get_as<T>(0)));
    }
  });
}

TEST_CASE("every message is counted as CAF's serializer counts it") {
  fixture f;
  auto random = stream(3, "messages_test");
  filler fill{random, f.someone};
  auto counted = [&]<class T>(T& x) {
    const auto message = caf::make_message(x);
    const auto kind = kind_of(message.content());
    INFO(kind.name);
    REQUIRE((kind.bytes != nullptr));
    CHECK(kind.bytes(message.content()) == caf::detail::serialized_size(f.world.system(), x));
  };
  for_each_type(known_messages{}, [&]<class T>(T*) {
    for (int i = 0; i < 50; ++i) {
      T x;
      fill(x);
      counted(x);
    }
  });
  for (const std::size_t length : {127, 128, 16383, 16384}) {
    store long_key{std::string(length, 'k'), {"", f.someone, payload::size_only(length), 0}};
    counted(long_key);
    samples_returned many;
    many.ranges.resize(length);
    counted(many);
  }
  CHECK((kind_of(caf::make_message(1).content()).bytes == nullptr));
}

TEST_CASE("a truncated message is an error") {
  fixture f;
  auto random = stream(2, "messages_test");
  filler fill{random, f.someone};
  for_each_type(known_messages{}, [&]<class T>(T*) {
    for (int i = 0; i < 5; ++i) {
      T x;
      fill(x);
      auto bytes = f.write(x);
      for (std::size_t keep = 0; keep < bytes.size(); ++keep) {
        T y;
        caf::binary_deserializer source{f.world.system(), bytes.data(), keep};
        INFO(kind_of(caf::make_message(x).content()).name);
        REQUIRE(source(y));
      }
    }
  });
}

TEST_CASE(
    "random bytes never crash the deserializer, and its allocations stay in proportion to them") {
  // The limit on allocated bytes for each byte that announces a vector element, growth included.
  constexpr std::uint64_t per_byte = 64, always = 4096;
  fixture f;
  auto random = stream(3, "messages_test");
  filler fill{random, f.someone};
  for_each_type(known_messages{}, [&]<class T>(T*) {
    for (int i = 0; i < 200; ++i) {
      T x;
      fill(x);
      auto bytes = f.write(x);
      for (auto n = 1 + random.below(6); n > 0 && !bytes.empty(); --n)
        bytes[random.below(bytes.size())] =
            static_cast<char>(random.below(2) == 0 ? 0xff : random.next());
      T y;
      caf::binary_deserializer source{f.world.system(), bytes};
      const auto before = allocated_bytes;
      (void)source(y);
      const auto taken = allocated_bytes - before;
      INFO(T::message_name);
      INFO(bytes.size());
      CHECK(taken <= always + per_byte * bytes.size());
    }
  });
}

TEST_CASE("a length beyond the end of the message causes no allocation of that size") {
  fixture f;
  const std::vector<char> huge_length{char(0xff), char(0xff), char(0xff), char(0xff), 0x0f};
  const auto refused = [&]<class T>(T y) {
    caf::binary_deserializer source{f.world.system(), huge_length};
    const auto before = allocated_bytes;
    CHECK(source(y));
    CHECK(allocated_bytes - before < 4096);
  };
  const auto before = allocated_bytes;
  const std::vector<char> counted(10'000);
  // The allocation counter itself works.
  CHECK(allocated_bytes - before >= counted.size());
  refused(std::string{});
  refused(std::vector<std::uint64_t>{});
  refused(lease_lost{});
  refused(part_answer{});
  refused(payload{});
}

TEST_CASE("a payload that announces too many bytes is refused") {
  fixture f;
  for (std::uint32_t size : {5u, 1u << 20, 0x0400'0001u, 0xffff'ffffu}) {
    auto bytes = f.write(size);
    bytes.resize(bytes.size() + 4);
    payload y;
    caf::binary_deserializer source{f.world.system(), bytes};
    CHECK(source(y));
    CHECK(y.empty());
  }
}

TEST_CASE("a size-only payload has the wire size of a real one") {
  fixture f;
  samples size_only{{0, 2}, payload::size_only(200'000)};
  samples full{{0, 2}, payload{std::vector<std::byte>(200'000)}};
  CHECK(f.write(size_only) == f.write(full));
}
