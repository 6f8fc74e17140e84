#include "actors/data/ledger_rows.hpp"

#include "actors/data/sample_ranges.hpp"

#include <algorithm>
#include <limits>

namespace shoal::actors {

namespace {

using kind = ledger_row_kind;

// Limits that the rows of a correct replica do not exceed. A report covers one range of samples.
// Uncertain ranges cover whole index blocks of former replicas.
constexpr std::uint64_t longest_reported = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t most_uncertain = 4096 * index_block_size;
constexpr std::int64_t longest_lease_ns = std::int64_t{1} << 60;

ledger_row plain_row(kind what, std::uint64_t first, std::uint64_t count, peer_id peer = 0) {
  ledger_row out;
  out.first = first;
  out.count = count;
  out.what = static_cast<std::uint8_t>(what);
  out.peer = peer;
  return out;
}

ledger_row row_of(std::uint64_t first, std::uint64_t count, const index_state& state,
                  duration now) {
  // The kinds of states come first, in the order of index_state::kind.
  auto out = plain_row(static_cast<kind>(state.state), first, count, state.peer);
  if (state.state == index_state::kind::leased) out.remaining_ns = (state.expires - now).count();
  out.epoch = state.epoch;
  out.group = state.group;
  out.parts_included = state.parts_included;
  out.parts_total = state.parts_total;
  return out;
}

ledger_row row_of(const sample_ledger::report& said) {
  auto out = plain_row(said.what == sample_ledger::report::kind::repeated ? kind::repeated
                                                                          : kind::disputed,
                       said.range.first, said.range.count, said.peer);
  out.epoch = said.epoch;
  out.group = said.group;
  out.parts_included = said.parts_included;
  out.parts_total = said.parts_total;
  return out;
}

/// Calls `add(first, count)` for the part of [first, end) in each index block.
template <class Add>
void by_block(std::uint64_t first, std::uint64_t end, Add add) {
  while (first < end) {
    const auto left = index_block_size - first % index_block_size;
    const auto count = std::min(end - first, left);
    add(first, count);
    first += count;
  }
}

} // namespace

std::vector<ledger_row> rows_of(const sample_ledger::changes& what, duration now) {
  std::vector<ledger_row> out;
  for (const auto& p : what.states)
    by_block(p.first, p.end, [&](std::uint64_t first, std::uint64_t count) {
      out.push_back(row_of(first, count, p.value, now));
    });
  for (const auto& [peer, had] : what.former)
    by_block(had.first, had.end, [&, peer = peer](std::uint64_t first, std::uint64_t count) {
      out.push_back(plain_row(kind::former, first, count, peer));
    });
  for (const auto& said : what.reports) out.push_back(row_of(said));
  for (const auto& p : what.doubtful.pieces())
    out.push_back(plain_row(kind::doubtful, p.first, p.size()));
  for (const auto& p : what.uncertain.pieces())
    out.push_back(plain_row(kind::uncertain, p.first, p.size()));
  for (const auto& p : what.settled.pieces())
    out.push_back(plain_row(kind::settled, p.first, p.size()));
  return out;
}

std::vector<ledger_row> rows_of(const sample_ledger& what, duration now) {
  std::vector<ledger_row> out;
  for (const auto& row : what.snapshot())
    by_block(row.first, row.first + row.count, [&](std::uint64_t first, std::uint64_t count) {
      out.push_back(row_of(first, count, row.state, now));
    });
  for (const auto& [peer, had] : what.former())
    for (const auto& p : had.pieces())
      by_block(p.first, p.end, [&, peer = peer](std::uint64_t first, std::uint64_t count) {
        out.push_back(plain_row(kind::former, first, count, peer));
      });
  for (const auto& said : what.reports()) out.push_back(row_of(said));
  for (const auto& p : what.doubtful().pieces())
    out.push_back(plain_row(kind::doubtful, p.first, p.size()));
  for (const auto& p : what.uncertain().pieces())
    out.push_back(plain_row(kind::uncertain, p.first, p.size()));
  return out;
}

result<void> apply_rows(std::span<const ledger_row> rows, sample_ledger& to, duration now) {
  for (const auto& row : rows) {
    if (row.count == 0 || row.count > std::numeric_limits<std::uint64_t>::max() - row.first)
      return failure{"a row without indices"};
    if (row.what > static_cast<std::uint8_t>(kind::settled))
      return failure{"a row of an unknown kind"};
    const auto what = static_cast<kind>(row.what);
    // An index has its state from one replica, which issues indices of one block. A larger row
    // would become a list that fills the memory when its leases expire.
    const bool of_one_block = what <= kind::former;
    if (of_one_block &&
        row.first / index_block_size != (row.first + row.count - 1) / index_block_size)
      return failure{"a row beyond its index block"};
    const bool of_a_round = what == kind::committed || what == kind::partial ||
                            what == kind::repeated || what == kind::disputed;
    if (of_a_round && (row.parts_total == 0 || row.parts_included > row.parts_total))
      return failure{"a round of that many parts"};
    if ((what == kind::repeated || what == kind::disputed) && row.count > longest_reported)
      return failure{"a report of that many samples"};
    if (what == kind::uncertain && row.count > most_uncertain)
      return failure{"too many uncertain samples"};
    const auto end = row.first + row.count;
    switch (what) {
    case kind::leased:
    case kind::returned:
    case kind::committed:
    case kind::partial: {
      index_state state;
      state.state = static_cast<index_state::kind>(row.what);
      if (what != kind::returned) state.peer = row.peer;
      if (what == kind::leased)
        state.expires =
            now + duration{std::clamp(row.remaining_ns, -longest_lease_ns, longest_lease_ns)};
      if (of_a_round) {
        state.epoch = row.epoch;
        state.group = row.group;
        state.parts_included = row.parts_included;
        state.parts_total = row.parts_total;
      }
      to.apply({row.first, end, state});
      break;
    }
    case kind::former:
      to.apply_former(row.peer, row.first, end);
      break;
    case kind::repeated:
    case kind::disputed: {
      std::vector<sample_range> ranges;
      append_range(ranges, row.first, end);
      for (const auto& range : ranges)
        to.apply_report({what == kind::repeated ? sample_ledger::report::kind::repeated
                                                : sample_ledger::report::kind::disputed,
                         range, row.epoch, row.peer, row.group, row.parts_included,
                         row.parts_total});
      break;
    }
    case kind::doubtful:
      to.apply_doubtful(row.first, end);
      break;
    case kind::uncertain:
      to.apply_uncertain(row.first, end);
      break;
    case kind::settled:
      to.apply_settled(row.first, end);
      break;
    }
  }
  return {};
}

} // namespace shoal::actors
