// What the launchers of all targets are made from, and the files that they become: to be read and
// changed by people, and run as they are.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/schema/inventory.hpp"
#include "scenarios/schema/scenario.hpp"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::scenarios {

struct deployed_host {
  std::string name;
  std::string address, host; ///< host:port that others dial, and its first half; empty: they cannot
  std::string port;
  std::string ssh, ssh_port; ///< [user@]host
  bool shard = false;
};

struct deployment {
  std::string name;                 ///< of the scenario, as a word
  std::vector<deployed_host> hosts; ///< shards first, then by name
  std::string program = "shoal";    ///< on the hosts
  bool insecure = false, pace = false;
  double seconds = 0; ///< predicted
  double detection_seconds = 5;
  std::uint64_t memory_bytes = 0; ///< of the node that needs most
  std::uint64_t needs_cores = 2;
};

struct deployed_file {
  std::string path, text;
  bool executable = false;
};

/// Errors: names and addresses that have no place in a script; one of who can be dialled is needed.
result<deployment> deployment_of(const scenario& what, const inventory& on);

/// Options of `shoal node` that follow from who it is, but for where its keys, scenario and run
/// directory are.
std::string node_options_of(const deployment& all, const deployed_host& host);
/// Whom a node joins: up to three that can be dialled.
std::vector<std::string> meeting_points(const deployment& all);

std::vector<deployed_file> ssh_files(const deployment& what);
std::vector<deployed_file> systemd_files(const deployment& what);
std::vector<deployed_file> slurm_files(const deployment& what);
std::vector<deployed_file> kubernetes_files(const deployment& what,
                                            const std::string& scenario_yaml);

/// `text` with each `@KEY@` replaced.
std::string filled(std::string_view text,
                   std::initializer_list<std::pair<std::string_view, std::string>> values);
/// Of a name that people gave, for folders, jobs and objects: lower-case letters, digits and '-';
/// 'swarm' if it has none.
std::string word_of(const std::string& name);
/// As #SBATCH --time takes it: days-hours:minutes:seconds.
std::string slurm_time(std::uint64_t minutes);
/// In single quotes where a shell would not take it as one plain word.
std::string shell_word(const std::string& text);

} // namespace shoal::scenarios
