// ledger.csv: the state of every issued sample index at the end, from the data shard's ledger.
//
//   index_first,count,state,epoch,peer,group,parts_included,parts_total
//   0,64,committed,1,3,00..2a,4,4
//   64,8,leased,,5,,,
//   72,8,returned,,,,,
//   80,1099511627696,unissued,,,,,
//   64,8,repeated,1,3,00..2a,4,4
//   64,8,disputed,1,3,00..2a,3,4
//   64,8,doubtful,,,,,
//   1099511627776,0,end,,,,,
//
// States, ascending and without gaps:
// - committed and partial are final.
// - leased: still leased at the end of the run; peer 0 means an unclaimed lease
//   (sample_ledger.hpp).
// - returned: no peer has the sample.
// - unissued: a gap up to the index block of the replica that took over.
//
// Events, which are no states:
// - repeated: the round of the row may have used the indices, too.
// - disputed: a member of the round named other parts.
// - doubtful: another primary, which cannot be asked, may have let peers use the indices.
//
// The last row, `end`, is the end of all issued indices.
//
// verify_data.hpp verifies the file against rounds.csv.
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

/// Errors: the file cannot be written completely. The message has the path.
result<void> write_ledger(const std::string& path, const actors::sample_ledger& ledger);

} // namespace shoal::scenarios
