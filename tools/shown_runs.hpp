// Run directories as `shoal serve` and `shoal report` show them: each with its view, and how far it
// was from the first. The nodes of a cluster under one folder are one run, followed by what each of
// them saw.
#pragma once

#include "kernels/base/result.hpp"
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
    std::filesystem::path directory; ///< of a cluster the folder of its nodes
    scenarios::run_place place;
    bool over = false; ///< it will not change any more
    bool cluster = false;
    std::vector<scenarios::run_view::section> sections;
    std::map<std::string, std::uintmax_t> sizes; ///< of its files, when it was read
    std::chrono::steady_clock::time_point next{};
  };

  /// `paths`: run directories, or folders of run directories.
  /// Errors: one has no run, or a damaged one.
  static result<shown_runs> read(const std::vector<std::string>& paths);

  const std::vector<run>& all() const noexcept { return all_; }
  /// Reads those again whose files have grown, not too often. Which they are, in ascending order;
  /// nodes that came to a cluster are behind all others.
  std::vector<std::size_t> read_again();

private:
  void add_nodes(std::size_t cluster);

  std::vector<run> all_;
};

} // namespace shoal::tools
