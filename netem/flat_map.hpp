// A hash table from integers to small values, in one array. It uses linear probing, is at most 5/8
// full, and erases by moving later entries back. A look-up costs one cache miss, against three for
// std::unordered_map.
// Source: Knuth, "The Art of Computer Programming", volume 3, section 6.4, algorithms L and R.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace shoal::netem {

/// Requires: no key is `flat_map::empty_key`; Value is default-constructible and movable. The
/// results of find() and operator[] are valid until the next insertion or erasure.
template <class Value>
class flat_map {
public:
  static constexpr std::uint64_t empty_key = ~std::uint64_t{0};

  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return places_.size() / 8 * 5; }

  Value* find(std::uint64_t key) noexcept {
    if (places_.empty()) return nullptr;
    auto& at = places_[index_of(key)];
    return at.key == key ? &at.value : nullptr;
  }
  const Value* find(std::uint64_t key) const noexcept {
    return const_cast<flat_map*>(this)->find(key);
  }

  /// Inserts a default value if the key is not there. Complexity: amortized O(1).
  Value& operator[](std::uint64_t key) {
    if (auto* found = find(key)) return *found;
    if (size_ >= capacity()) rebuild(places_.empty() ? 64 : 2 * places_.size());
    auto& at = places_[index_of(key)];
    at.key = key;
    ++size_;
    return at.value;
  }

  bool erase(std::uint64_t key) {
    if (places_.empty()) return false;
    auto hole = index_of(key);
    if (places_[hole].key != key) return false;
    places_[hole] = place{};
    --size_;
    for (auto i = next(hole); places_[i].key != empty_key; i = next(i)) {
      // The entry at i may move into the hole unless its home lies after the hole.
      auto home = home_of(places_[i].key);
      if (((i - home) & mask()) < ((i - hole) & mask())) continue;
      places_[hole] = std::exchange(places_[i], place{});
      hole = i;
    }
    return true;
  }

  /// Calls `what(key, value)` for each entry. The order must not influence results.
  template <class Function>
  void for_each(Function what) const {
    for (const auto& at : places_)
      if (at.key != empty_key) what(at.key, at.value);
  }

  /// Drops every entry for which `what(key, value)` is true, and gives back room that is not
  /// needed.
  template <class Predicate>
  void erase_if(Predicate what) {
    std::size_t kept = 0;
    for (auto& at : places_) {
      if (at.key == empty_key) continue;
      if (what(at.key, at.value))
        at = place{};
      else
        ++kept;
    }
    size_ = kept;
    std::size_t wanted = 64;
    while (wanted / 8 * 5 < 2 * kept) wanted *= 2;
    if (!places_.empty()) rebuild(wanted);
  }

private:
  struct place {
    std::uint64_t key = empty_key;
    Value value{};
  };

  std::size_t mask() const noexcept { return places_.size() - 1; }
  std::size_t next(std::size_t i) const noexcept { return (i + 1) & mask(); }
  std::size_t home_of(std::uint64_t key) const noexcept {
    // Fibonacci hashing of both halves of the key. The low bits alone would not spread.
    auto mixed = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15u;
    return static_cast<std::size_t>(mixed >> 32) & mask();
  }
  /// The index of the key, or of the free place for it.
  std::size_t index_of(std::uint64_t key) const noexcept {
    auto i = home_of(key);
    while (places_[i].key != key && places_[i].key != empty_key) i = next(i);
    return i;
  }
  void rebuild(std::size_t places) {
    std::vector<place> old(places);
    old.swap(places_);
    for (auto& at : old)
      if (at.key != empty_key) places_[index_of(at.key)] = std::move(at);
  }

  std::vector<place> places_; // a power of two many
  std::size_t size_ = 0;
};

} // namespace shoal::netem
