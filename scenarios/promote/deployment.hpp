// The launchers of a promoted scenario. A `deployment` holds the facts that every target needs.
// Each target turns the facts into files that run as they are and that people can read and change.
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
  std::string address; ///< host:port that other hosts dial; empty: nobody can dial this host
  std::string host;    ///< the part of `address` before the colon
  std::string port;
  std::string ssh, ssh_port; ///< [user@]host
  bool shard = false;
};

struct deployment {
  std::string name;                 ///< name of the scenario, as a word
  std::vector<deployed_host> hosts; ///< shards first, then by name
  std::string program = "shoal";    ///< path of the program on the hosts
  bool insecure = false, pace = false;
  double seconds = 0; ///< predicted duration of the run
  double detection_seconds = 5;
  std::uint64_t memory_bytes = 0; ///< memory of the largest node
  std::uint64_t needs_cores = 2;
};

struct deployed_file {
  std::string path, text;
  bool executable = false;
};

/// Collects the facts of a deployment. Errors: a name or an address that a script cannot hold; no
/// host can be dialled.
result<deployment> deployment_of(const scenario& what, const inventory& on);

/// Returns the options of `shoal node` for one host, without the paths of its keys, scenario and
/// run directory.
std::string node_options_of(const deployment& all, const deployed_host& host);
/// Returns the addresses that a node joins: up to three hosts that can be dialled.
std::vector<std::string> meeting_points(const deployment& all);

std::vector<deployed_file> ssh_files(const deployment& what);
std::vector<deployed_file> systemd_files(const deployment& what);
std::vector<deployed_file> slurm_files(const deployment& what);
std::vector<deployed_file> kubernetes_files(const deployment& what,
                                            const std::string& scenario_yaml);

/// Returns `text` with each `@KEY@` replaced by its value.
std::string filled(std::string_view text,
                   std::initializer_list<std::pair<std::string_view, std::string>> values);
/// Turns a free name into a word for folders, jobs and objects. The word has lower-case letters,
/// digits and '-'. A name without such characters becomes 'swarm'.
std::string word_of(const std::string& name);
/// Returns a time in the form of #SBATCH --time: days-hours:minutes:seconds.
std::string slurm_time(std::uint64_t minutes);
/// Returns `text` as one word of a shell, in single quotes where needed.
std::string shell_word(const std::string& text);

} // namespace shoal::scenarios
