// traffic.csv: the bytes that each machine sent to each region, by traffic class, over all
// incarnations of the machine. A message counts where it is delivered: a process of a cluster
// counts the messages to its own host.
//   host,region,to_region,data,averaging,state,control
#pragma once

#include "scenarios/observe/run_listener.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shoal::scenarios {

class traffic_table {
public:
  /// The traffic class of a message type, by the type's name.
  using classes = std::function<std::uint8_t(const char* type)>;
  explicit traffic_table(classes class_of) : class_of_(std::move(class_of)) {}

  bool knows(std::uint32_t machine) const {
    return machine < machines_.size() && machines_[machine].known;
  }
  void place(std::uint32_t machine, std::string host, const std::string& region);
  /// Counts a message. Complexity: O(1), some nanoseconds. Requires: both machines are known;
  /// `type` is one of a closed set of strings with stable addresses.
  void add(std::uint32_t from, std::uint32_t to, const char* type, std::uint64_t bytes);

  /// Calls `each` for every machine and region with traffic between them, by machine, then region.
  void tell(const std::function<void(const sent_bytes&)>& each) const;
  std::string csv() const;

private:
  struct machine {
    bool known = false;
    std::string name;
    std::uint32_t region = 0;
    std::vector<std::array<std::uint64_t, 4>> to; // bytes by region
  };

  classes class_of_;
  std::vector<machine> machines_;
  std::vector<std::string> regions_;
  std::vector<std::pair<const char*, std::uint8_t>>
      types_; // a few dozen; a type moves forward when it is used
};

} // namespace shoal::scenarios
