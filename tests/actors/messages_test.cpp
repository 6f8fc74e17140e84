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
#include <limits>
#include <set>
#include <type_traits>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

// ---- how many fields the struct really has ------------------------------------------------------

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

// Field by field, without the serializer's help.
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, payload>) {
    return a.size() == b.size() &&
           std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin());
  } else if constexpr (is_leaf<T>) {
    return a == b;
  } else if constexpr (is_vector<T>::value) {
    if (a.size() != b.size())
      return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!same(a[i], b[i]))
        return false;
    return true;
  } else {
    // The k-th field of a beside the k-th of b.
    bool equal = true;
    std::size_t k = 0;
    each_field(const_cast<T&>(a), [&]<class Field>(Field& left) {
      std::size_t j = 0;
      each_field(const_cast<T&>(b), [&]<class Other>(Other& right) {
        if constexpr (std::is_same_v<Field, Other>) {
          if (j == k)
            equal = equal && same(left, right);
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

TEST_CASE("every registered message type is among those that are tested") {
  caf::actor_system_config config;
  register_messages(config);
  std::set<std::string> registered, tested;
  for (const auto& [name, factory] : config.value_factories_by_name)
    if (name.rfind("shoal::", 0) == 0)
      registered.insert(name);
  for_each_type(all_messages{}, [&]<class T>(T*) {
    tested.insert(std::string{"shoal::"} + kind_of(caf::make_message(T{}).content()).name);
  });
  CHECK(registered == tested);
  CHECK(tested.count("shoal::?") == 0);
}

TEST_CASE("bulk messages are counted as what they carry, all others as control") {
  auto kind = [](auto x) { return kind_of(caf::make_message(x).content()).kind; };
  CHECK(kind(samples{}) == traffic::data);
  CHECK(kind(part_chunk{}) == traffic::averaging);
  CHECK(kind(reduced_chunk{}) == traffic::averaging);
  CHECK(kind(state_chunk{}) == traffic::state);
  CHECK(kind(state_offer{}) == traffic::state);
  CHECK(kind(commit{}) == traffic::control);
  CHECK(std::string{kind_of(caf::make_message(1).content()).name} == "?");
}

TEST_CASE("no message forgets a field when it is serialized") {
  for_each_type(all_messages{}, []<class T>(T*) {
    T x;
    std::size_t inspected = 0;
    each_field(x, [&](auto&) { ++inspected; });
    INFO(kind_of(caf::make_message(x).content()).name);
    CHECK(inspected == field_count<T>());
  });
}

TEST_CASE("every message survives the serializer unchanged") {
  fixture f;
  auto random = stream(1, "messages_test");
  filler fill{random, f.someone};
  for_each_type(all_messages{}, [&]<class T>(T*) {
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
      // And inside a caf::message, by its registered name.
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
  for_each_type(all_messages{}, [&]<class T>(T*) {
    for (int i = 0; i < 50; ++i) {
      T x;
      fill(x);
      counted(x);
    }
  });
  for (const std::size_t length : {127, 128, 16383, 16384}) {
    store long_key{std::string(length, 'k'), {"", f.someone, payload::hollow(length), 0}};
    counted(long_key);
    samples_returned many;
    many.ranges.resize(length);
    counted(many);
  }
  CHECK((kind_of(caf::make_message(1).content()).bytes == nullptr));
}

TEST_CASE("a message that was cut short is an error") {
  fixture f;
  auto random = stream(2, "messages_test");
  filler fill{random, f.someone};
  for_each_type(all_messages{}, [&]<class T>(T*) {
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

TEST_CASE("random bytes never crash the deserializer, and never make it allocate much") {
  fixture f;
  auto random = stream(3, "messages_test");
  filler fill{random, f.someone};
  for_each_type(all_messages{}, [&]<class T>(T*) {
    for (int i = 0; i < 200; ++i) {
      T x;
      fill(x);
      auto bytes = f.write(x);
      for (auto n = 1 + random.below(6); n > 0 && !bytes.empty(); --n)
        bytes[random.below(bytes.size())] =
            static_cast<char>(random.below(2) == 0 ? 0xff : random.next());
      T y;
      caf::binary_deserializer source{f.world.system(), bytes};
      (void)source(y);
    }
  });
}

TEST_CASE("a payload that announces more than there is, or than is allowed, is refused") {
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

TEST_CASE("a hollow payload weighs on the wire what its bytes would") {
  fixture f;
  samples hollow{{0, 2}, payload::hollow(200'000)};
  samples full{{0, 2}, payload{std::vector<std::byte>(200'000)}};
  CHECK(f.write(hollow) == f.write(full));
}
