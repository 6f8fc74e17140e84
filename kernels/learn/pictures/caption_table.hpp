// Pictures and their captions: a table with a column of file names, or a folder in which NAME.txt
// is the caption of NAME.png.
#pragma once

#include "kernels/base/result.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace shoal::learn {

struct captioned_file {
  std::filesystem::path path;
  std::string caption;
};

/// The rows of a table with tabs between its columns, whose first line names them. Rows without a
/// caption are left out. File names are relative to `folder`.
/// Errors: a file that cannot be read; a column that the table lacks (names those that it has); a
/// row with fewer columns than the first line.
result<std::vector<captioned_file>> read_caption_table(const std::filesystem::path& table,
                                                       const std::filesystem::path& folder,
                                                       const std::string& file_column,
                                                       const std::string& caption_column);

/// The PNG files of a folder in the order of their names. Errors: no such folder; a picture without
/// a caption; no pictures.
result<std::vector<captioned_file>> read_caption_folder(const std::filesystem::path& folder);

} // namespace shoal::learn
