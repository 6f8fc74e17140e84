// transfers.jsonl.zst: a line for each bulk transfer when it ends, with the transfer's rates and
// their limits.
//   {"transfer":7,"from":"home-3#0/2","to":"home-4#1/0","type":"part_chunk","bytes":40000,"sent_ns":1,"begun_ns":1,
//    "left_ns":9,"arrives_ns":12,"round_trip_ns":6,"cut":false,
//    "steps":[[1,0,"connecting"],[7,1447200,"slow_start"],[8,4000000,"link","uplink of home-3",2]]}
// A step is [start (ns), bits/s, why]. Where a link is the limit, its name and the number of
// transfers on it follow.
#pragma once

#include "netem/events.hpp"
#include "scenarios/observe/json_lines.hpp"
#include "scenarios/observe/names.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace shoal::scenarios {

class transfer_log {
public:
  using link_names = std::function<std::string(netem::link_id)>;

  /// Keeps the first `most` transfers.
  transfer_log(std::unique_ptr<output_file> file, std::uint64_t most, host_names& names,
               link_names links);

  void on_transfer(const netem::transfer_record& what);
  const std::optional<failure>& error() const noexcept { return lines_.error(); }
  void flush() { lines_.flush(); }
  result<void> close() { return lines_.close(); }

private:
  json_lines lines_;
  std::uint64_t left_;
  host_names& names_;
  link_names links_;
};

} // namespace shoal::scenarios
