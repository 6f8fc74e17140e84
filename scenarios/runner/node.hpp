// A process of a cluster: one host of a scenario, and the real network to the others.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/address.hpp"
#include "netem/wire/network.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/schema/scenario.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct node_options {
  std::string name;  ///< among the others; of a host of the scenario, or any other one with `group`
  std::string group; ///< whose options it has; empty: its name says so
  std::optional<netem::wire::address> listen; ///< none: it only dials
  std::string advertise;                      ///< where others dial, if not there
  std::vector<netem::wire::address> join;
  std::string invitation; ///< the command line with which others join, without what each says for
                          ///< itself; for run.yaml
  bool shape = false;     ///< the scenario's network is put before the real one
  std::optional<data_rate>
      uplink; ///< the line, if it is not the scenario's; 0: none that bulk would have to spare
  std::uint64_t relay_bytes = 0; ///< so much it passes on between hosts that can both only dial
  bool pace = false;             ///< steps last as long as the scenario's device takes, at least
  std::shared_ptr<grpc::ServerCredentials>
      server_credentials; ///< null: neither encrypted nor authenticated
  std::shared_ptr<grpc::ChannelCredentials> channel_credentials;
  std::shared_ptr<const netem::wire::admission> admits;
  /// Signs what this node has contributed (netem/wire/signed_text.hpp); empty: it is not signed.
  std::function<std::string(std::string_view kind, std::string_view text)> sign;
  /// A line for whoever watches the process. Any thread.
  std::function<void(const std::string&)> say;
};

/// What a process has contributed since it started.
struct contribution_total {
  std::uint64_t rounds = 0, samples = 0, epoch = 0; ///< epoch: of the last of these rounds
};
inline constexpr std::string_view contribution_kind = "contribution";
inline constexpr const char* contribution_file = "contribution.txt"; ///< in the run directory
/// As a text to be signed. `scenario_hash`: of common_text(), in hexadecimal digits.
std::string contribution_text(const contribution_total& what, const std::string& host,
                              const std::string& scenario_hash, std::int64_t started_utc_ns,
                              std::int64_t until_utc_ns);
/// When it says that it ends. Errors: no such text.
result<std::int64_t> contribution_until(std::string_view text);

/// What a node is in its scenario: a peer, or a data shard.
struct node_role {
  std::optional<std::size_t> peer;  ///< index into `hosts`
  std::optional<std::size_t> shard; ///< index into shard_hosts()
};
/// Finds it by its name; a name that is new is added to `hosts`, with the options of `group`.
/// Errors: no host of that name and no group; a group that there is not. They say which there are.
result<node_role> role_of(const scenario& what, const node_options& node,
                          std::vector<host_spec>& hosts);

/// The index block of a data shard's process (actors/data/sample_ledger.hpp), which cannot know how
/// often its shard was started before, nor what the other replicas are at: quarters of a second
/// since 2026, in 28 bits (two years; then they begin again), and the replica's number in 4. So
/// processes that start later have higher ones, and no two the same. Requires: replica < 16.
std::uint64_t index_block_of(std::int64_t utc_ns, std::size_t replica);

/// What all nodes of a swarm have to agree about: the scenario without what may differ from host to
/// host (its world, where the data are).
std::string common_text(const scenario& what);
/// The first difference of two such texts, in a line.
std::string first_difference(const std::string& mine, const std::string& theirs);

} // namespace shoal::scenarios
