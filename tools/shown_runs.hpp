// Run directories as `shoal serve` and `shoal report` show them. Each one has its view, and its
// difference from the first one. The nodes of a cluster under one folder are one run, followed by
// the view of each node.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/page/cluster_reader.hpp"
#include "scenarios/page/run_view.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::tools {

class shown_runs {
public:
  struct run {
    std::filesystem::path directory; ///< for a cluster, the folder of its nodes
    scenarios::run_place place;
    bool over = false; ///< the run is over and will not change
    bool cluster = false;
    std::vector<scenarios::run_view::section> sections;
    std::map<std::string, std::uintmax_t> sizes; ///< sizes of the run's files at the last reading
    std::chrono::steady_clock::time_point next{};
  };

  /// `paths`: run directories, or folders of run directories.
  /// Errors: one has no run, or a damaged one.
  static result<shown_runs> read(const std::vector<std::string>& paths);

  const std::vector<run>& all() const noexcept { return all_; }
  /// Reads the runs again whose files have grown, not too often. Returns their indices, ascending.
  /// Nodes that joined a cluster come after all others.
  std::vector<std::size_t> read_again();

  /// Whether one of the runs is a cluster.
  bool has_cluster() const;
  /// Adds rows to the first cluster for hosts without a directory here, in place of earlier ones.
  /// The next reading shows them.
  void set_distant(std::vector<scenarios::distant_node> all);

private:
  void add_nodes(std::size_t cluster);
  const std::vector<scenarios::distant_node>* distant_of(const run& of) const;

  std::vector<run> all_;
  std::vector<scenarios::distant_node> distant_;
  bool distant_changed_ = false;
};

} // namespace shoal::tools
