#include "scenarios/workloads/check_texts.hpp"

#include "kernels/learn/text_file.hpp"
#include "scenarios/schema/check_scenario.hpp"
#include "scenarios/schema/hosts.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace shoal::scenarios {

namespace {

/// Any bytes are a text, but packed files and JSON lines have a format.
void check_format(const scenario& what, const std::string& path, const std::string& file,
                  checking& report) {
  if (learn::format_of(file) == learn::text_format{} || !report.sound({"data.field"})) return;
  const auto text = learn::read_text_file(file, what.data.field, std::uint64_t{1} << 30);
  if (!text) report.error(path, text.error());
}

} // namespace

void check_texts(const scenario& what, const char* model, checking& report) {
  if (!report.sound({"data.files"})) return;
  if (what.data.files.empty())
    report.error("data.files", fmt::format("data.files: {} needs text to learn", model));
  if (what.world == "cluster") return; // only the host of a shard has them
  for (std::size_t i = 0; i < what.data.files.size(); ++i) {
    const std::string path = fmt::format("data.files.{}", i);
    if (!report.sound({path})) continue;
    const auto given = path_from(report.folder(), what.data.files[i]);
    const auto files = files_matching(given);
    if (std::filesystem::is_directory(std::filesystem::status(given)))
      report.error(path, fmt::format("'{0}' is a folder: name its files, as in '{0}/*'",
                                     what.data.files[i]));
    else if (files.empty())
      report.error(path, no_such_file(what.data.files[i], report.folder()));
    for (const auto& file : files) check_format(what, path, file, report);
  }
}

} // namespace shoal::scenarios
