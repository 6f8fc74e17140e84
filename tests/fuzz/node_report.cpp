// A host's report about itself, as the asking side (shoal status) reads it.
#include "scenarios/observe/node_report.hpp"

#include "tests/fuzz/targets.hpp"

namespace shoal::fuzz {

void node_report(bytes input) {
  using namespace scenarios;
  const auto read = node_report_from_json(text_of(input));
  if (!read) {
    must(!read.error().empty(), "what is wrong is said");
    return;
  }
  const auto text = to_json(*read);
  const auto again = node_report_from_json(text);
  must(again && to_json(*again) == text, "what is written reads back");
}

} // namespace shoal::fuzz
