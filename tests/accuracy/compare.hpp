// Compares the models with the stored references of a folder.
#pragma once

#include "tests/accuracy/model.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace shoal::accuracy {

struct times {
  double last = 0, mean = 0;
};

struct comparison {
  std::string name;
  std::size_t flows = 0;
  double reference = 0, reference_mean = 0;
  times tcp, lv08, max_min;

  double error(const times& t) const { return (t.last - reference) / reference; }
  double mean_error(const times& t) const { return (t.mean - reference_mean) / reference_mean; }
};

inline times times_of(const std::vector<double>& ends) {
  times out;
  for (const double end : ends) {
    out.last = std::max(out.last, end);
    out.mean += end / static_cast<double>(ends.size());
  }
  return out;
}

/// Reads the lines `index seconds` of a reference, in the order of their indices.
inline std::vector<double> read_reference(const std::filesystem::path& path, std::size_t flows) {
  std::vector<double> ends(flows, -1);
  std::ifstream in(path);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::size_t index = 0;
    double end = 0;
    if (words >> index >> end && index < flows) ends[index] = end;
  }
  if (std::find(ends.begin(), ends.end(), -1) != ends.end())
    throw std::runtime_error(path.string() + ": a flow is missing");
  return ends;
}

/// Compares every pattern of a folder that has a reference with this suffix, by name. With
/// `host_queues`, the uplinks push back.
inline std::vector<comparison> compare(const std::filesystem::path& folder,
                                       const std::string& suffix, const netem::tcp_options& tcp,
                                       bool host_queues = false) {
  std::vector<std::filesystem::path> patterns;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".pattern") patterns.push_back(entry.path());
  std::sort(patterns.begin(), patterns.end());
  std::vector<comparison> rows;
  for (const auto& path : patterns) {
    auto reference = path;
    reference.replace_extension("." + suffix);
    if (!std::filesystem::exists(reference)) continue;
    const auto what = read_pattern(path.string());
    const auto measured = times_of(read_reference(reference, what.flows.size()));
    comparison row;
    row.name = path.stem().string();
    row.flows = what.flows.size();
    row.reference = measured.last;
    row.reference_mean = measured.mean;
    row.tcp = times_of(run_pattern(what, netem::transfer_model::tcp, tcp, host_queues));
    row.lv08 = times_of(run_pattern(what, netem::transfer_model::lv08, tcp));
    row.max_min = times_of(run_pattern(what, netem::transfer_model::max_min, tcp));
    rows.push_back(row);
  }
  return rows;
}

/// The mean delay of small messages, seconds: measured, and in the model.
struct probe_comparison {
  std::string name;
  double queue = 0;             ///< packets
  std::vector<double> measured; ///< by run
  double model = 0;

  double mean() const {
    double sum = 0;
    for (const double one : measured) sum += one;
    return sum / static_cast<double>(measured.size());
  }
  double error() const { return model / mean() - 1; }
};

/// The mean of the delays that were sent after the first second, and not in the last 1.2 s.
inline double mean_delay(const std::vector<std::pair<double, double>>& delays) {
  double sum = 0, count = 0;
  for (const auto& [sent, delay] : delays)
    if (sent > 1 && sent < delays.back().first - 1.2) {
      sum += delay;
      ++count;
    }
  return sum / count;
}

/// The delays of messages from host 0 to host 1 behind the flows of the patterns in `folder`.
inline std::vector<probe_comparison> compare_probes(const std::filesystem::path& folder) {
  std::vector<probe_comparison> rows;
  for (const char* const name : {"one_flow", "three_flows"})
    for (const int queue : {100, 1000}) {
      probe_comparison row{name, static_cast<double>(queue), {}, 0};
      for (const char* const run : {"-1", "-2"}) {
        std::vector<std::pair<double, double>> delays;
        std::ifstream in(folder / (std::string(name) + ".linux-" + std::to_string(queue) + run));
        std::string line;
        while (std::getline(in, line)) {
          std::istringstream words(line);
          std::string hash, word;
          std::pair<double, double> one;
          if (words >> hash >> word >> one.first >> one.second && word == "probe")
            delays.push_back(one);
        }
        row.measured.push_back(mean_delay(delays));
      }
      netem::tcp_options tcp;
      tcp.queue.packets = queue;
      probing probe{0, 1, std::chrono::milliseconds(20), {}};
      run_pattern(read_pattern((folder / (std::string(name) + ".flows")).string()),
                  netem::transfer_model::tcp, tcp, false, &probe);
      std::vector<std::pair<double, double>> delays;
      for (const auto& [sent, delay] : probe.delays)
        delays.emplace_back(to_seconds(sent), to_seconds(delay));
      row.model = mean_delay(delays);
      rows.push_back(row);
    }
  return rows;
}

struct summary {
  double mean = 0, worst = 0, mean_flow = 0, worst_flow = 0;
  std::string worst_name;
};

inline summary summarize(const std::vector<comparison>& rows, times comparison::*which) {
  summary out;
  for (const auto& row : rows) {
    const double e = row.error(row.*which), m = row.mean_error(row.*which);
    out.mean += std::abs(e) / static_cast<double>(rows.size());
    out.mean_flow += std::abs(m) / static_cast<double>(rows.size());
    if (std::abs(e) > std::abs(out.worst)) {
      out.worst = e;
      out.worst_name = row.name;
    }
    if (std::abs(m) > std::abs(out.worst_flow)) out.worst_flow = m;
  }
  return out;
}

} // namespace shoal::accuracy
