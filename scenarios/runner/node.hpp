// A node: a process that runs one host of a scenario and reaches the other hosts over a real
// network.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/address.hpp"
#include "netem/wire/network.hpp"
#include "netem/wire/signing_key.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/schema/scenario.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct node_options {
  std::string name;  ///< name of a scenario's host, or a new name if `group` is set
  std::string group; ///< group that gives the node's options; empty: the group of `name`
  std::optional<netem::wire::address> listen; ///< empty: the node only dials
  std::string advertise;                      ///< address that peers dial, if not `listen`
  std::vector<netem::wire::address> join;     ///< addresses of hosts to dial at start
  /// Command line for hosts that join, without the options of a single host. For run.yaml.
  std::string invitation;
  bool shape = false; ///< messages pass the scenario's emulated network before the real one
  /// Rate of the line, if it differs from the scenario's. 0: bulk transfers need not leave room.
  std::optional<data_rate> uplink;
  std::uint64_t relay_bytes = 0; ///< limit on bytes relayed between hosts that can only dial
  bool pace = false;             ///< a step lasts at least as long as on the scenario's device
  /// Null: no encryption and no authentication.
  std::shared_ptr<const netem::wire::tls_credentials> credentials;
  std::shared_ptr<const netem::wire::admission> admits;
  /// Null: the node has the stand-in key of its name.
  std::shared_ptr<const netem::wire::signing_key> key;
  std::string certificate; ///< PEM
  /// The file of the node's bans (scenarios/runner/bans_file.hpp); empty: bans end with the
  /// process.
  std::string bans;
  /// Signs this node's contribution (netem/wire/signed_text.hpp). Empty: no signature.
  std::function<std::string(std::string_view kind, std::string_view text)> sign;
  /// Prints a line for the operator. Thread safety: any thread may call this function.
  std::function<void(const std::string&)> say;
};

/// Contribution of a process since its start.
struct contribution_total {
  std::uint64_t rounds = 0, samples = 0, epoch = 0; ///< epoch: the last round's
};
inline constexpr std::string_view contribution_kind = "contribution";
inline constexpr const char* contribution_file = "contribution.txt"; ///< file in the run directory
/// Returns the text to sign. `scenario_hash` is the hash of common_text() in hexadecimal digits.
std::string contribution_text(const contribution_total& what, const std::string& host,
                              const std::string& scenario_hash, std::int64_t started_utc_ns,
                              std::int64_t until_utc_ns);
/// Returns the end time in a contribution's text. Errors: not a contribution's text.
result<std::int64_t> contribution_until(std::string_view text);

/// The role of a node in its scenario: a peer or a data shard.
struct node_role {
  std::optional<std::size_t> peer;  ///< index into `hosts`
  std::optional<std::size_t> shard; ///< index into shard_hosts()
};
/// Finds a node's role by its name. Adds a new name to `hosts`, with the options of `group`.
/// Errors: an unknown name without a group, or an unknown group. The message lists the groups.
result<node_role> role_of(const scenario& what, const node_options& node,
                          std::vector<host_spec>& hosts);

/// Checks that a host with this role can behave like `conduct`, a name of actors::conducts() or
/// empty. Errors: only data shards can, or only peers.
result<void> can_behave(const std::string& conduct, const node_role& role, const std::string& name);

/// Returns the index block of a data shard's process (actors/data/sample_ledger.hpp). A process
/// knows neither earlier starts of its shard nor the blocks of other replicas. So the high 30 bits
/// of the block count the periods of 2.5 seconds since 2026, until the year 2110. The low 4 bits
/// hold the replica's number. Two processes of one replica that start in one period get the same
/// block. So a process waits for shard_start_delay() before it issues samples.
/// Requires: replica < 16.
std::uint64_t index_block_of(std::int64_t utc_ns, std::size_t replica);
/// Returns the time until the period of index_block_of() ends.
duration shard_start_delay(std::int64_t utc_ns);

/// Returns the part of a scenario that all nodes of a swarm must share. It leaves out the world and
/// the paths of data files, which may differ between hosts.
std::string common_text(const scenario& what);
/// Describes the first difference between two results of common_text(), in one line.
std::string first_difference(const std::string& mine, const std::string& theirs);

} // namespace shoal::scenarios
