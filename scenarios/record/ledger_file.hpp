// ledger.csv: where every issued sample index ended, as the data shard's ledger has it.
//
//   index_first,count,state,epoch,peer,group,parts_included,parts_total
//   0,64,committed,1,3,00..2a,4,4    one row for each piece with one final state, ascending, no
//   gaps 64,8,leased,,5,,,                still out when the run ended; peer 0: to somebody whom
//   the former primary knew 72,8,returned,,,,,               nobody has them
//   80,1099511627696,unissued,,,,,   up to the index block of the replica that took over
//   (sample_ledger.hpp) 64,8,repeated,1,3,00..2a,4,4     an event, not a state: this round may hold
//   them too 64,8,disputed,1,3,00..2a,3,4     an event: a member of that round said other parts
//   64,8,doubtful,,,,,               an event: another primary, which cannot be asked, may have let
//   them be used 1099511627776,0,end,,,,,         the last row: indices below this one were issued
//
// verify_data.hpp re-derives that the file is consistent, against rounds.csv.
#pragma once

#include "actors/data/sample_ledger.hpp"
#include "kernels/base/result.hpp"

#include <iosfwd>
#include <string>
#include <string_view>

namespace shoal::scenarios {

inline constexpr std::string_view ledger_header =
    "index_first,count,state,epoch,peer,group,parts_included,parts_total";

void write_ledger(std::ostream& out, const actors::sample_ledger& ledger);

/// Errors: the file cannot be written whole (says the path).
result<void> write_ledger(const std::string& path, const actors::sample_ledger& ledger);

} // namespace shoal::scenarios
