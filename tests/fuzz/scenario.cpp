// A scenario file: parsed, checked, and, if it is one, printed and read again. Inputs that name
// files are skipped, because this target does not look at files on a disk.
#include "scenarios/schema/inventory.hpp"
#include "scenarios/schema/load.hpp"
#include "tests/fuzz/targets.hpp"

namespace shoal::fuzz {

void scenario(bytes input) {
  using namespace scenarios;
  const auto text = text_of(input);
  if (text.find('/') != std::string_view::npos) return;
  if (text.starts_with("hosts:")) {
    const auto read = load_inventory_text(text, "inventory.yaml");
    must(read.value.has_value() == read.errors.empty(), "a value, or errors");
    if (!read.value) return;
    const auto again = load_inventory_text(to_yaml(*read.value), "inventory.yaml");
    must(again.value && *again.value == *read.value, "what is printed reads back");
    return;
  }
  const auto read = load_text(text, "nowhere/fuzz.yaml");
  must(read.value.has_value() == read.errors.empty(), "a value, or errors");
  for (const auto& error : read.errors) must(!render(error).empty(), "errors can be shown");
  if (!read.value) return;
  const auto again = load_text(to_yaml(*read.value), "nowhere/fuzz.yaml");
  must(again.value && *again.value == *read.value, "what is printed reads back");
}

} // namespace shoal::fuzz
