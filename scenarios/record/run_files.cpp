#include "scenarios/record/run_files.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/base/text_fields.hpp"
#include "scenarios/observe/event_log.hpp"
#include "scenarios/observe/run_directory.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

namespace shoal::scenarios {

namespace {

namespace fs = std::filesystem;

/// The lines that end in a newline; the header is the first one.
result<std::vector<std::string>> whole_lines(const fs::path& file) {
  auto text = read_file(file);
  if (!text) return failure{text.error()};
  text->resize(text->find_last_of('\n') + 1); // npos + 1 is 0
  std::vector<std::string> out;
  for (const std::string_view line : split(*text, '\n'))
    if (!line.empty()) out.emplace_back(line);
  return out;
}

} // namespace

std::optional<fs::path> whole_or_partial(const fs::path& directory, std::string_view name) {
  std::error_code error;
  for (const std::string_view ending : {"", ".partial"}) {
    fs::path path = directory / (std::string(name) + std::string(ending));
    if (fs::is_regular_file(path, error)) return path;
  }
  return std::nullopt;
}

bool each_row(
    const fs::path& directory, std::string_view name,
    const std::function<void(const std::vector<std::string_view>&, std::string_view)>& each) {
  const auto file = whole_or_partial(directory, name);
  if (!file) return false;
  std::ifstream in(*file);
  std::string line;
  std::getline(in, line);
  std::vector<std::string_view> fields;
  while (std::getline(in, line)) {
    if (in.eof()) break; // an incomplete line, without a newline
    fields.clear();
    for (std::string_view rest = line;;) {
      const std::size_t comma = rest.find(',');
      fields.push_back(rest.substr(0, comma));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    each(fields, line);
  }
  return true;
}

result<summary> read_summary(const fs::path& directory) {
  const auto file = directory / "summary.json";
  auto text = read_file(file);
  if (!text) return failure{text.error()};
  auto out = summary_from_json(*text);
  if (!out) return failure{fmt::format("'{}': {}", file.string(), out.error())};
  return out;
}

std::optional<std::size_t> metric_table::column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

result<metric_table> read_metrics(const fs::path& directory) {
  const auto file = whole_or_partial(directory, "metrics.csv");
  if (!file) return failure{fmt::format("'{}' has no metrics.csv", directory.string())};
  const auto lines = whole_lines(*file);
  if (!lines) return failure{lines.error()};
  metric_table out;
  if (lines->empty()) return out;
  for (const auto column : split(lines->front(), ',')) out.columns.emplace_back(column);
  for (std::size_t i = 1; i < lines->size(); ++i) {
    const auto fields = split((*lines)[i], ',');
    if (fields.size() != out.columns.size()) continue;
    std::vector<std::optional<double>> row;
    for (const auto field : fields) row.push_back(number_of<double>(field));
    out.rows.push_back(std::move(row));
  }
  return out;
}

result<std::map<std::string, double>> last_metrics(const fs::path& directory) {
  std::map<std::string, double> out;
  const auto file = whole_or_partial(directory, "metrics.csv");
  if (!file) return out;
  const auto lines = whole_lines(*file);
  if (!lines) return failure{lines.error()};
  if (lines->size() < 2) return out;
  const auto names = split(lines->front(), ','), fields = split(lines->back(), ',');
  for (std::size_t i = 0; i < std::min(names.size(), fields.size()); ++i)
    if (const auto value = number_of<double>(fields[i])) out.emplace(names[i], *value);
  return out;
}

result<std::map<std::uint64_t, recorded_epoch>> read_epochs(const fs::path& directory) {
  std::map<std::uint64_t, recorded_epoch> out;
  const auto file = whole_or_partial(directory, "epochs.csv");
  if (!file) return out;
  const auto lines = whole_lines(*file);
  if (!lines) return failure{lines.error()};
  for (std::size_t i = 1; i < lines->size(); ++i) {
    const auto fields = split((*lines)[i], ',');
    const auto epoch = number_of<std::uint64_t>(fields[0]);
    const auto samples = fields.size() == 5 ? number_of<std::uint64_t>(fields[2]) : std::nullopt;
    if (!epoch || !samples)
      return failure{fmt::format("'{}': line {} is no row of epochs.csv", file->string(), i + 1)};
    out[*epoch] = {number_of<double>(fields[1]), *samples, number_of<double>(fields[3]),
                   number_of<double>(fields[4])};
  }
  return out;
}

result<bool> read_events(const fs::path& directory, const std::vector<std::string_view>& kinds,
                         const std::function<void(const nlohmann::json&)>& each) {
  std::vector<std::string> marks;
  for (const std::string_view kind : kinds) marks.push_back(fmt::format(R"("what":"{}")", kind));
  return read_json_lines(directory, "events.jsonl.zst", marks, each);
}

result<bool> read_json_lines(const fs::path& directory, std::string_view name,
                             const std::vector<std::string>& marks,
                             const std::function<void(const nlohmann::json&)>& each) {
  const auto file = whole_or_partial(directory, name);
  if (!file) return failure{fmt::format("'{}' has no {}", directory.string(), name)};
  auto log = event_log_reader::open(*file);
  if (!log) return failure{log.error()};
  std::string line;
  for (std::uint64_t number = 1;; ++number) {
    const auto more = log->next(line);
    if (!more && file->extension() == ".partial") return false;
    if (!more) return failure{more.error()};
    if (!*more) return true;
    // Most lines of a log of all messages have none of the marks and need not be parsed.
    if (!marks.empty() && std::none_of(marks.begin(), marks.end(), [&](const std::string& mark) {
          return line.find(mark) != std::string::npos;
        }))
      continue;
    try {
      each(parse_json<nlohmann::json>(line));
    } catch (const nlohmann::json::exception& error) {
      return failure{fmt::format("'{}': line {}: {}", file->string(), number, error.what())};
    }
  }
}

} // namespace shoal::scenarios
