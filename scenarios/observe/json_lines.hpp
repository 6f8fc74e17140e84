// A file of JSON objects, one a line, compressed by zstd as it is written.
#pragma once

#include "scenarios/observe/run_directory.hpp"

#include <memory>
#include <optional>
#include <string_view>

namespace shoal::scenarios {

class json_lines {
public:
  explicit json_lines(std::unique_ptr<output_file> file);
  ~json_lines();

  /// Appends a line and a newline.
  void line(std::string_view text);
  /// Makes the lines so far readable from the file. This costs some compression.
  void flush();
  /// The first error so far, if any (disk full, say). The run may stop early because of it.
  const std::optional<failure>& error() const noexcept { return file_->error(); }
  /// Ends the compressed stream and gives the file its final name.
  result<void> close();

private:
  struct compressor;
  std::unique_ptr<output_file> file_;
  std::unique_ptr<compressor> zstd_;
};

} // namespace shoal::scenarios
