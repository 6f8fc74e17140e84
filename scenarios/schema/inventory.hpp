// The inventory: a YAML file of the real hosts that will run a scenario. For each host it holds the
// measurements of `shoal probe` and the operator's settings. Like a scenario it has a describe(),
// so that diagnostics name the line of a mistake.
#pragma once

#include "kernels/base/units.hpp"
#include "scenarios/schema/diagnostic.hpp"
#include "scenarios/schema/rule.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct inventory_host {
  std::string address; ///< host:port that peers dial; empty: peers cannot dial this host
  std::string group;   ///< the scenario's group that gives the other options; empty: the first
  bool shard = false;  ///< the host has the data and runs the data shard instead of a peer
  // Measured.
  std::string model;             ///< measured model: fingerprint_of() of the scenario's workload
  double samples_per_second = 0; ///< 0 for a shard
  double jitter = 0; ///< standard deviation of a micro-batch's duration, as a fraction of the mean
  duration step_time{}; ///< duration of one optimizer step
  duration boot_time{}; ///< from the start of a node's process until the node is up
  std::uint64_t cores = 0;
  data_size memory, needs; ///< memory of the host, and of the process that measured
  data_rate serialize;     ///< bulk, sent and received together; 0: not measured
  data_rate up, down;
  std::map<std::string, duration> delays; ///< round-trip times to other hosts of the inventory
  // Set by the operator.
  std::string ssh; ///< ssh target of the launcher: [user@]host[:port]; empty: the address's host
  double price_per_hour = 0; ///< in any currency
  bool operator==(const inventory_host&) const = default;
};

struct inventory {
  std::map<std::string, inventory_host> hosts;
  bool operator==(const inventory&) const = default;
};

template <class V>
void describe(V& v, inventory_host& o) {
  v.field("address", o.address,
          "`host:port` that peers dial; without an address, peers cannot dial the host",
          {.hide_default = true});
  v.field("group", o.group, "the scenario's group that gives the host's other options",
          {.hide_default = true, .otherwise = "the first"});
  v.field("shard", o.shard, "the host has the data and runs the data shard instead of a peer",
          {.hide_default = true});
  v.field("model", o.model, "model of the measurements below, as `shoal probe` writes it",
          {.hide_default = true});
  v.field("samples_per_second", o.samples_per_second,
          "samples that go forward and backward in a second",
          {.at_least = 0, .at_most = 1e9, .hide_default = true});
  v.field("jitter", o.jitter, "standard deviation of a micro-batch's duration as a fraction of it",
          {.at_least = 0, .below = 1, .fraction = true, .hide_default = true});
  v.field("step_time", o.step_time, "duration of one optimizer step", {.hide_default = true});
  v.field("boot_time", o.boot_time, "time from the start of a node's process until it is up",
          {.hide_default = true});
  v.field("cores", o.cores, "of the host", {.hide_default = true});
  v.field("memory", o.memory, "of the host", {.hide_default = true});
  v.field("needs", o.needs, "memory that the process had while it measured",
          {.hide_default = true});
  v.field("serialize", o.serialize,
          "rate at which the host serializes, encrypts and copies what it sends and receives",
          {.at_least = 0, .hide_default = true});
  v.field("up", o.up, "highest rate at which the host sends", {.required = true, .above = 0});
  v.field("down", o.down, "highest rate at which the host receives",
          {.required = true, .above = 0});
  v.field("delays", o.delays, "round trip to other hosts of the inventory");
  v.field("ssh", o.ssh, "how the ssh launcher reaches it: `[user@]host[:port]`",
          {.hide_default = true, .otherwise = "the host of `address`"});
  v.field("price_per_hour", o.price_per_hour, "in any currency",
          {.at_least = 0, .at_most = 1e9, .hide_default = true});
}

template <class V>
void describe(V& v, inventory& o) {
  v.field("hosts", o.hosts, "by name: letters, digits, `-`, `.` and `_`", {.required = true});
}

struct inventory_result {
  std::optional<inventory> value; ///< if and only if there are no errors
  std::vector<diagnostic> errors, warnings;
};

/// Loads an inventory. Errors: mistakes in the file, invalid host names, two hosts with the same
/// address. Warnings: delays to hosts that the inventory does not list.
inventory_result load_inventory(const std::string& path);
inventory_result load_inventory_text(std::string_view text, const std::string& file_name);

/// Writes an inventory as YAML. load_inventory_text() reads an equal inventory back.
std::string to_yaml(const inventory& what);

} // namespace shoal::scenarios
