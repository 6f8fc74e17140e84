// Injected bugs of DHT nodes and data shards. Each one shows that a check can fail.
#pragma once

#include "actors/conduct/conduct.hpp"
#include "actors/data/ledger_rows.hpp"
#include "actors/data/messages.hpp"

namespace shoal::actors {

struct expired_record final : conduct {
  bool gives_expired_records() override { return true; }
};

struct forgotten_commit final : conduct {
  std::span<const ledger_row> rows_to_apply(std::span<const ledger_row> rows,
                                            std::vector<ledger_row>& room) override {
    for (const auto& row : rows)
      if (row.what != static_cast<std::uint8_t>(ledger_row_kind::committed)) room.push_back(row);
    return room;
  }
};

} // namespace shoal::actors
