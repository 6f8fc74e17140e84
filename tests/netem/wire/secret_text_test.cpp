#include "netem/wire/node_keys.hpp"
#include "netem/wire/secret_text.hpp"
#include "netem/wire/signing_key.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace {

// The contents of the watched memory at its release.
const void* watched = nullptr;
constexpr std::size_t seen_bytes = 16;
char seen[seen_bytes];
bool was_freed = false;

void look_and_free(void* memory) noexcept {
  if (memory != nullptr && memory == watched) {
    std::copy_n(static_cast<const char*>(memory), seen_bytes, seen);
    was_freed = true;
    watched = nullptr;
  }
  std::free(memory);
}

void watch(const shoal::netem::wire::secret_text& what) {
  std::fill_n(seen, seen_bytes, '?');
  was_freed = false;
  watched = what.view().data();
}

bool freed_as_zeros() {
  return was_freed && std::all_of(seen, seen + seen_bytes, [](char c) { return c == 0; });
}

} // namespace

void* operator new[](std::size_t size) {
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete[](void* memory) noexcept {
  look_and_free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  look_and_free(memory);
}

using shoal::netem::wire::node_keys;
using shoal::netem::wire::secret_text;

TEST_CASE("the memory of a secret is zeros when it is released") {
  const std::string word = "sixteen letters!";
  {
    const secret_text secret(word);
    CHECK(secret.view() == word);
    watch(secret);
  }
  CHECK(freed_as_zeros());

  secret_text replaced(word);
  watch(replaced);
  replaced = secret_text(std::string_view("another secret, longer"));
  CHECK(freed_as_zeros());
  CHECK(replaced.view() == "another secret, longer");

  watch(replaced);
  replaced.wipe();
  CHECK(freed_as_zeros());
  CHECK(replaced.empty());

  {
    node_keys keys;
    keys.key_pem = shoal::netem::wire::signing_key::make().pem();
    watch(keys.key_pem);
  }
  CHECK(freed_as_zeros());
}

TEST_CASE("a secret moves and leaves nothing behind, and cannot be copied or printed") {
  secret_text from(std::string_view("sixteen letters!"));
  const void* memory = from.view().data();
  secret_text to(std::move(from));
  CHECK(to.view().data() == memory);
  CHECK(from.empty()); // NOLINT: the test needs the moved-from object
  static_assert(!std::is_copy_constructible_v<secret_text> &&
                !std::is_copy_assignable_v<secret_text>);
  static_assert(!std::is_copy_constructible_v<node_keys>);
  static_assert(!fmt::is_formattable<secret_text>::value &&
                !std::is_convertible_v<secret_text, std::string_view>);
}
