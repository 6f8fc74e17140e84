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

/// Compares every pattern of a folder that has a reference with this suffix, by name.
inline std::vector<comparison> compare(const std::filesystem::path& folder,
                                       const std::string& suffix, const netem::tcp_options& tcp) {
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
    row.tcp = times_of(run_pattern(what, netem::transfer_model::tcp, tcp));
    row.lv08 = times_of(run_pattern(what, netem::transfer_model::lv08, tcp));
    row.max_min = times_of(run_pattern(what, netem::transfer_model::max_min, tcp));
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
