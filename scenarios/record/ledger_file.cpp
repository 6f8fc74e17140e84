#include "scenarios/record/ledger_file.hpp"

#include <fmt/format.h>

#include <fstream>

namespace shoal::scenarios {

namespace {

using state_kind = actors::index_state::kind;

std::string_view name_of(state_kind state) {
  switch (state) {
  case state_kind::leased:
    return "leased";
  case state_kind::returned:
    return "returned";
  case state_kind::committed:
    return "committed";
  case state_kind::partial:
    return "partial";
  }
  return "?";
}

} // namespace

void write_ledger(std::ostream& out, const actors::sample_ledger& ledger) {
  out << ledger_header << '\n';
  std::uint64_t next = 0;
  for (const auto& row : ledger.snapshot()) {
    if (next < row.first) out << fmt::format("{},{},unissued,,,,,\n", next, row.first - next);
    next = row.first + row.count;
    const auto& s = row.state;
    out << fmt::format("{},{},{},", row.first, row.count, name_of(s.state));
    if (s.state == state_kind::returned)
      out << ",,,,\n";
    else if (s.state == state_kind::leased)
      out << fmt::format(",{},,,\n", s.peer);
    else
      out << fmt::format("{},{},{},{},{}\n", s.epoch, s.peer, s.group.hex(), s.parts_included,
                         s.parts_total);
  }
  for (const auto& r : ledger.reports())
    out << fmt::format("{},{},{},{},{},{},{},{}\n", r.range.first, r.range.count,
                       r.what == actors::sample_ledger::report::kind::repeated ? "repeated"
                                                                               : "disputed",
                       r.epoch, r.peer, r.group.hex(), r.parts_included, r.parts_total);
  interval_set doubtful = ledger.doubtful();
  for (const auto& p : ledger.uncertain().pieces()) doubtful.insert(p.first, p.end);
  for (const auto& p : doubtful.pieces())
    out << fmt::format("{},{},doubtful,,,,,\n", p.first, p.size());
  out << fmt::format("{},0,end,,,,,\n", ledger.high_water());
}

result<void> write_ledger(const std::string& path, const actors::sample_ledger& ledger) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (out) write_ledger(out, ledger);
  out.close();
  if (!out) return failure{path + ": cannot be written"};
  return {};
}

} // namespace shoal::scenarios
