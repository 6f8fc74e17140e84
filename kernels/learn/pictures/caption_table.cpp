#include "kernels/learn/pictures/caption_table.hpp"

#include "kernels/learn/formats/whole_file.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace shoal::learn {

namespace {

constexpr std::uint64_t most_table = std::uint64_t{1} << 30, most_caption = 1 << 16;

std::vector<std::string> cells_of(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string> out;
  for (;;) {
    const auto tab = line.find('\t');
    out.emplace_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return out;
    line.remove_prefix(tab + 1);
  }
}

} // namespace

result<std::vector<captioned_file>> read_caption_table(const std::filesystem::path& table,
                                                       const std::filesystem::path& folder,
                                                       const std::string& file_column,
                                                       const std::string& caption_column) {
  const auto text = read_whole_file(table, most_table, "captions");
  if (!text) return failure{text.error()};
  std::vector<captioned_file> out;
  std::vector<std::string> names;
  std::size_t file = 0, caption = 0, number = 0;
  for (std::string_view rest = *text; !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const auto cells = cells_of(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (number > 1) {
      if (cells.size() == 1 && cells[0].empty()) continue;
      if (cells.size() < names.size())
        return failure{"captions: line " + std::to_string(number) + " of '" + table.string() +
                       "' has " + std::to_string(cells.size()) + " columns; the first line has " +
                       std::to_string(names.size())};
      if (!cells[caption].empty()) out.push_back({folder / cells[file], cells[caption]});
      continue;
    }
    names = cells;
    for (const auto& [name, place] :
         {std::pair{&file_column, &file}, std::pair{&caption_column, &caption}}) {
      const auto found = std::find(names.begin(), names.end(), *name);
      if (found == names.end()) {
        std::string known;
        for (const auto& one : names) known += (known.empty() ? "" : ", ") + one;
        return failure{"captions: '" + table.string() + "' has no column '" + *name + "'; it has " +
                       known};
      }
      *place = static_cast<std::size_t>(found - names.begin());
    }
  }
  if (out.empty()) return failure{"captions: '" + table.string() + "' has no row with a caption"};
  return out;
}

result<std::vector<captioned_file>> read_caption_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<captioned_file> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".png") out.push_back({entry.path(), {}});
  if (error)
    return failure{"captions: the folder '" + folder.string() +
                   "' cannot be read: " + error.message()};
  if (out.empty()) return failure{"captions: there is no .png in '" + folder.string() + "'"};
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  for (auto& one : out) {
    auto beside = one.path;
    auto text = read_whole_file(beside.replace_extension(".txt"), most_caption, "captions");
    if (!text)
      return failure{text.error() + "; it should hold the caption of the picture of that name"};
    one.caption = text->substr(0, text->find_first_of("\r\n"));
  }
  return out;
}

} // namespace shoal::learn
