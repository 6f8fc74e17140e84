// How many bytes a message is when CAF's serializer writes it, without writing it: an inspector
// that the compiler sees through, about a tenth of what caf::detail::serialized_size_inspector
// takes with its virtual call and its error for each field. A simulation counts every message that
// crosses hosts.
#pragma once

#include "kernels/base/payload.hpp"

#include <caf/actor.hpp>
#include <caf/detail/serialized_size.hpp>
#include <caf/meta/annotation.hpp>
#include <caf/node_id.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace shoal::actors {

/// Ensures: after `counter(x)`, bytes() has grown by what CAF's size inspector counts for x
/// (tests/actors/messages_test.cpp).
class byte_counter {
public:
  using result_type = void;
  static constexpr bool reads_state = true, writes_state = false;

  std::uint64_t bytes() const noexcept { return bytes_; }

  template <class... Ts>
  void operator()(Ts&&... fields) {
    (count(fields), ...);
  }

private:
  template <class T>
  void count(T& x) {
    using type = std::remove_const_t<T>;
    if constexpr (caf::meta::is_annotation<type>::value) {
    } else if constexpr (std::is_integral_v<type> || std::is_enum_v<type>) {
      bytes_ += sizeof(type);
    } else if constexpr (std::is_same_v<type, std::string>) {
      length(x.size());
      bytes_ += x.size();
    } else if constexpr (std::is_same_v<type, payload>) {
      bytes_ += sizeof(std::uint32_t) + x.size();
    } else if constexpr (std::is_same_v<type, caf::actor>) {
      bytes_ += sizeof(caf::actor_id) + of_node(x);
    } else {
      inspect(*this, x);
    }
  }
  template <class T>
  void count(std::vector<T>& all) {
    static_assert(!std::is_same_v<T, bool>, "CAF packs those");
    length(all.size());
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
      bytes_ += all.size() * sizeof(T);
    else
      for (auto& x : all) count(x);
  }
  /// Seven bits in each byte.
  void length(std::size_t of) {
    for (++bytes_; of > 0x7f; of >>= 7) ++bytes_;
  }
  static std::uint64_t by_caf(caf::node_id node) {
    caf::detail::serialized_size_inspector counter{nullptr};
    counter(node);
    return counter.result();
  }
  static std::uint64_t of_node(const caf::actor& whose) {
    // Asked for each address; all that are of CAF's own kind are equally long.
    static const std::uint64_t none = by_caf({}),
                               usual = by_caf(
                                   caf::node_id{caf::make_counted<caf::node_id::default_data>()});
    if (!whose) return none;
    const auto node = whose.node();
    return node && node->implementation_id() == caf::node_id::default_data::class_id ? usual
                                                                                     : by_caf(node);
  }

  std::uint64_t bytes_ = 0;
};

} // namespace shoal::actors
