#include "tools/shown_runs.hpp"

#include "kernels/base/json_text.hpp"
#include "scenarios/compare/run_comparison.hpp"
#include "scenarios/page/run_reader.hpp"
#include "scenarios/record/run_files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shoal::tools {

namespace {

namespace fs = std::filesystem;
using steady = std::chrono::steady_clock;

bool is_run(const fs::path& directory) {
  return scenarios::whole_or_partial(directory, "run.yaml") ||
         scenarios::whole_or_partial(directory, "metrics.csv");
}

void add_sizes(const fs::path& directory, std::map<std::string, std::uintmax_t>& into) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    if (std::error_code ignored;
        entry->is_regular_file(ignored) && entry->path().filename() != "report.html")
      into[entry->path().string()] = entry->file_size(ignored);
}

/// The run directories in `path`.
std::vector<fs::path> runs_within(const fs::path& path) {
  std::error_code error;
  std::vector<fs::path> out;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    if (std::error_code ignored; entry->is_directory(ignored) && is_run(entry->path()))
      out.push_back(entry->path());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<fs::path> nodes_within(const fs::path& path) {
  auto out = runs_within(path);
  std::erase_if(out, [](const fs::path& one) { return !scenarios::is_node_directory(one); });
  return out;
}

/// A fingerprint that changes with new data: the sizes of a run's files, and whether a node still
/// writes. A node that falls silent has changed, although its files have not.
std::map<std::string, std::uintmax_t> sizes_of(const shown_runs::run& run) {
  std::map<std::string, std::uintmax_t> out;
  if (!run.cluster) {
    add_sizes(run.directory, out);
    return out;
  }
  for (const auto& node : nodes_within(run.directory)) {
    add_sizes(node, out);
    out[node.string()] = scenarios::still_writes(node) ? 1 : 0;
  }
  return out;
}

/// Requires: `run.sizes` are those of now.
result<std::unique_ptr<scenarios::run_view>>
read_cluster(shown_runs::run& run, const std::vector<scenarios::distant_node>& distant) {
  std::vector<scenarios::node_directory> nodes;
  run.over = true;
  for (const auto& node : nodes_within(run.directory)) {
    const auto known = run.sizes.find(node.string());
    if (known == run.sizes.end()) continue; // the node came just now, and is read the next time
    nodes.push_back({node, known->second == 1});
    run.over = run.over && run.sizes.contains((node / "summary.json").string());
  }
  return scenarios::read_cluster_view(run.directory, nodes, distant);
}

/// The difference of `actual` from `predicted`, or the reason why there is none.
std::string compared(const fs::path& predicted, const fs::path& actual) {
  auto out = scenarios::compare_runs(predicted, actual, {}, true);
  if (!out) return clean_json_text(nlohmann::json{{"error", out.error()}});
  return json_text(parse_json<nlohmann::ordered_json>(scenarios::to_json(*out)));
}

result<void> read_into(shown_runs::run& run, const fs::path* predicted,
                       const std::vector<scenarios::distant_node>& distant = {}) {
  const auto begun = steady::now();
  run.sizes = sizes_of(run);
  if (!run.cluster) run.over = run.sizes.contains((run.directory / "summary.json").string());
  auto view = run.cluster ? read_cluster(run, distant) : scenarios::read_run_view(run.directory);
  if (!view) return failure{view.error()};
  run.sections = (*view)->sections();
  if (predicted != nullptr)
    run.sections.push_back({"comparison", compared(*predicted, run.directory)});
  run.next = steady::now() +
             std::max<steady::duration>(std::chrono::seconds(2), 10 * (steady::now() - begun));
  return {};
}

} // namespace

result<shown_runs> shown_runs::read(const std::vector<std::string>& paths) {
  shown_runs out;
  const auto predicted = [&out] { return out.all_.empty() ? nullptr : &out.all_[0].directory; };
  const auto add = [&](const fs::path& directory, bool cluster) -> result<void> {
    run one;
    one.place.title = directory.lexically_normal().string();
    if (one.place.title.size() > 1 && one.place.title.ends_with('/')) one.place.title.pop_back();
    if (!out.all_.empty()) one.place.beside = 0;
    one.directory = directory;
    one.cluster = cluster;
    if (auto read = read_into(one, predicted()); !read) return failure{read.error()};
    out.all_.push_back(std::move(one));
    return {};
  };
  for (const auto& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) return failure{fmt::format("'{}' is no directory", path)};
    if (is_run(path)) {
      if (auto added = add(path, false); !added) return failure{added.error()};
      continue;
    }
    auto directories = runs_within(path);
    if (directories.empty())
      return failure{fmt::format("there is no run in '{}': neither files of one (run.yaml, "
                                 "metrics.csv) nor folders of some",
                                 path)};
    const auto nodes = nodes_within(path);
    // Nodes of several clusters in one folder are shown separately.
    if (!nodes.empty() && add(path, true).ok()) {
      out.add_nodes(out.all_.size() - 1);
      std::erase_if(directories, [&nodes](const fs::path& one) {
        return std::find(nodes.begin(), nodes.end(), one) != nodes.end();
      });
    }
    for (const auto& directory : directories)
      if (auto added = add(directory, false); !added) return failure{added.error()};
  }
  return out;
}

/// Adds the view of each of the cluster's hosts. Hosts that are shown already keep their places. A
/// host that cannot be read yet is left for the next time.
void shown_runs::add_nodes(std::size_t cluster) {
  for (const auto& directory : nodes_within(all_[cluster].directory)) {
    if (std::any_of(all_.begin(), all_.end(),
                    [&](const run& one) { return one.directory == directory; }))
      continue;
    run one;
    one.place.title = directory.lexically_normal().string();
    one.place.of = cluster;
    one.directory = directory;
    if (read_into(one, nullptr)) all_.push_back(std::move(one));
  }
}

bool shown_runs::has_cluster() const {
  return std::any_of(all_.begin(), all_.end(), [](const run& one) { return one.cluster; });
}

void shown_runs::set_distant(std::vector<scenarios::distant_node> all) {
  distant_ = std::move(all);
  distant_changed_ = true;
}

/// The hosts without a directory of the first cluster; null for other runs.
const std::vector<scenarios::distant_node>* shown_runs::distant_of(const run& of) const {
  const auto first =
      std::find_if(all_.begin(), all_.end(), [](const run& one) { return one.cluster; });
  return first != all_.end() && &*first == &of ? &distant_ : nullptr;
}

std::vector<std::size_t> shown_runs::read_again() {
  std::vector<std::size_t> out;
  const std::size_t before = all_.size();
  for (std::size_t i = 0; i < before; ++i) {
    auto& run = all_[i];
    if (run.over || steady::now() < run.next) continue;
    run.next = steady::now() + std::chrono::seconds(2);
    const auto* distant = distant_of(run);
    if (sizes_of(run) == run.sizes && (distant == nullptr || !distant_changed_)) continue;
    if (distant != nullptr) distant_changed_ = false;
    // The file may end in a line that is being written. The next reading decides.
    if (auto read =
            read_into(run, run.place.beside ? &all_[*run.place.beside].directory : nullptr,
                      distant != nullptr ? *distant : std::vector<scenarios::distant_node>{}))
      out.push_back(i);
    if (run.cluster) add_nodes(i); // adding may have moved `run`
  }
  for (std::size_t i = before; i < all_.size(); ++i) out.push_back(i);
  return out;
}

} // namespace shoal::tools
