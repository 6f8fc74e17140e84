// The directory that a run writes. Each file appears whole or not at all: it is written under its
// name with '.partial' appended, and renamed at the end. Error messages name the path.
#pragma once

#include "kernels/base/result.hpp"

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::scenarios {

/// A file that grows until commit(); without commit() no file remains. The first error is kept, and
/// later writes do nothing.
class output_file {
public:
  /// Errors: the file cannot be created.
  static result<std::unique_ptr<output_file>> create(std::filesystem::path path);
  ~output_file();
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  void write(std::string_view bytes);
  /// Hands the bytes written so far to the operating system. They survive if the process is killed,
  /// in the file '….partial'.
  void flush();
  /// The first error so far, if any: disk full, for instance.
  const std::optional<failure>& error() const noexcept { return error_; }
  /// Gives the file its name. Errors: a write failed; the file cannot be closed or renamed.
  result<void> commit();
  const std::filesystem::path& path() const noexcept { return path_; }

private:
  explicit output_file(std::filesystem::path path);
  void fail(const char* doing, int code);

  std::filesystem::path path_, partial_;
  std::FILE* file_ = nullptr;
  bool committed_ = false;
  std::optional<failure> error_;
};

class run_directory {
public:
  /// The files that a run may write. With `force`, create() removes these and
  /// checkpoints/epoch-N.ckpt from an existing directory, and no other file.
  static constexpr std::array<std::string_view, 19> known_files{
      "run.yaml",         "summary.json",        "metrics.csv", "metrics.prom",
      "events.jsonl.zst", "transfers.jsonl.zst", "epochs.csv",  "ledger.csv",
      "rounds.csv",       "peers.csv",           "final.ckpt",  "report.html",
      "curves.svg",       "contributions.csv",   "experts.csv", "contribution.txt",
      "traffic.csv",      "cases.jsonl",         "guard.jsonl"};

  /// Checks that a run may write to `path`; a failure is a user's error.
  /// Errors: the path exists and `force` is not set; it is no directory; nothing can be written.
  static result<void> check_free(const std::filesystem::path& path, bool force);

  /// Creates the directory, parents included, and checks that a file can be written there.
  /// Errors: those of check_free, no permission, disk full.
  static result<run_directory> create(std::filesystem::path path, bool force);

  const std::filesystem::path& path() const noexcept { return path_; }
  std::filesystem::path file(std::string_view name) const { return path_ / name; }
  /// Writes a whole file.
  result<void> write(std::string_view name, std::string_view content) const;
  /// A folder in the directory, made if there is none. Errors: the folder cannot be made.
  result<std::filesystem::path> folder(std::string_view name) const;
  /// Removes the files of this run, whole or not, and the directory if nothing else is in it.
  void discard() const;
  /// Creates a file that the caller writes and commits.
  result<std::unique_ptr<output_file>> open(std::string_view name) const;

private:
  explicit run_directory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

/// A file's whole content. Errors: the file cannot be read.
result<std::string> read_file(const std::filesystem::path& path);
/// Writes a whole file in place. Errors: it cannot be written; the message names it.
result<void> write_file(const std::filesystem::path& path, std::string_view content);

} // namespace shoal::scenarios
