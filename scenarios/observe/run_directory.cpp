#include "scenarios/observe/run_directory.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/text_fields.hpp"
#include "scenarios/observe/epoch_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <system_error>
#include <thread>
#include <vector>

namespace shoal::scenarios {

namespace fs = std::filesystem;

namespace {

/// Makes the folder, and those above it. A process that checks a folder beside this one removes the
/// folders above it that it has made (try_to_write), maybe at this moment. So the function tries
/// again. `file_exists` says that a folder was there, and was gone when the library looked at it.
std::error_code make_folders(const fs::path& path) {
  std::error_code error;
  for (int tries = 0; tries < 100; ++tries) {
    fs::create_directories(path, error);
    if (error != std::errc::no_such_file_or_directory && error != std::errc::file_exists) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return error;
}

/// Checks that a folder can be made at `path`, or is there, and that a file can be written in it.
/// Leaves nothing behind, but for folders that processes with checks at the same moment share.
result<void> try_to_write(const fs::path& path) {
  std::error_code error, ignored;
  std::vector<fs::path> missing;
  for (auto at = fs::absolute(path, error); !error && !at.empty() && !fs::exists(at, ignored);
       at = at.parent_path())
    missing.push_back(at);
  error = make_folders(path);
  std::string why = error ? error.message() : "";
  if (!error) {
    const auto probe = path / ".writable";
    std::FILE* file = std::fopen(probe.c_str(), "wbe");
    if (file == nullptr)
      why = std::strerror(errno);
    else
      std::fclose(file);
    fs::remove(probe, ignored);
  }
  for (const auto& made : missing) fs::remove(made, ignored);
  if (why.empty()) return {};
  return failure{fmt::format("cannot write to '{}': {}", path.string(), why)};
}

} // namespace

std::optional<std::uint64_t> epoch_of(std::string_view name, std::string_view ending) {
  constexpr std::string_view before = "epoch-";
  if (!name.starts_with(before) || !name.ends_with(ending) ||
      name.size() <= before.size() + ending.size())
    return std::nullopt;
  name = name.substr(before.size(), name.size() - before.size() - ending.size());
  return number_of<std::uint64_t>(name);
}

output_file::output_file(fs::path path) : path_(std::move(path)), partial_(path_) {
  partial_ += ".partial";
}

result<std::unique_ptr<output_file>> output_file::create(fs::path path) {
  std::unique_ptr<output_file> out(new output_file(std::move(path)));
  out->file_ = std::fopen(out->partial_.c_str(), "wbe");
  if (out->file_ == nullptr)
    return failure{
        fmt::format("cannot create '{}': {}", out->path_.string(), std::strerror(errno))};
  return out;
}

output_file::~output_file() {
  if (file_ != nullptr) std::fclose(file_);
  std::error_code ignored;
  if (!committed_) fs::remove(partial_, ignored);
}

void output_file::fail(const char* doing, int code) {
  if (!error_)
    error_ = failure{fmt::format("cannot {} '{}': {}", doing, path_.string(), std::strerror(code))};
}

void output_file::write(std::string_view bytes) {
  SHOAL_CHECK(file_ != nullptr, "write after commit");
  if (error_ || bytes.empty()) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail("write", errno);
}

void output_file::flush() {
  SHOAL_CHECK(file_ != nullptr, "flush after commit");
  if (!error_ && std::fflush(file_) != 0) fail("write", errno);
}

result<void> output_file::commit() {
  SHOAL_CHECK(file_ != nullptr, "commit twice");
  if (std::fflush(file_) != 0) fail("write", errno);
  if (std::fclose(file_) != 0) fail("close", errno);
  file_ = nullptr;
  if (error_) return *error_;
  if (std::rename(partial_.c_str(), path_.c_str()) != 0) {
    fail("rename to", errno);
    return *error_;
  }
  committed_ = true;
  return {};
}

result<void> run_directory::check_free(const fs::path& path, bool force) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return try_to_write(path);
  if (status.type() == fs::file_type::none)
    return failure{fmt::format("cannot use '{}': {}", path.string(), error.message())};
  if (status.type() != fs::file_type::directory)
    return failure{fmt::format("'{}' exists and is not a directory", path.string())};
  if (!force)
    return failure{fmt::format("'{}' exists; --force replaces the run in it", path.string())};
  return try_to_write(path);
}

result<run_directory> run_directory::create(fs::path path, bool force) {
  if (auto free = check_free(path, force); !free) return failure{free.error()};
  auto error = make_folders(path);
  if (error) return failure{fmt::format("cannot create '{}': {}", path.string(), error.message())};
  run_directory out(std::move(path));
  // Checks that the directory is writable before it removes any file.
  constexpr std::string_view probe = ".writable";
  if (auto written = out.write(probe, "?"); !written) return failure{written.error()};
  fs::remove(out.file(probe), error);
  for (const std::string_view name : known_files) {
    fs::remove(out.file(name), error);
    if (error)
      return failure{
          fmt::format("cannot remove '{}': {}", out.file(name).string(), error.message())};
  }
  // A checkpoints folder with other files in it stays.
  const fs::path checkpoints = out.file("checkpoints");
  std::vector<fs::path> old;
  for (fs::directory_iterator entry(checkpoints, error), end; !error && entry != end;
       entry.increment(error))
    if (const auto name = entry->path().filename().string();
        epoch_of(name, ".ckpt") || epoch_of(name, ".png"))
      old.push_back(entry->path());
  for (const fs::path& file : old) {
    fs::remove(file, error);
    if (error)
      return failure{fmt::format("cannot remove '{}': {}", file.string(), error.message())};
  }
  fs::remove(checkpoints, error);
  return out;
}

result<fs::path> run_directory::folder(std::string_view name) const {
  std::error_code error;
  fs::create_directories(file(name), error);
  if (error)
    return failure{fmt::format("cannot create '{}': {}", file(name).string(), error.message())};
  return file(name);
}

void run_directory::discard() const {
  std::error_code ignored;
  for (const std::string_view name : known_files) {
    fs::remove(file(name), ignored);
    fs::remove(file(std::string(name) + ".partial"), ignored);
  }
  // Both fail if they hold anything else.
  fs::remove(file("checkpoints"), ignored);
  fs::remove(path_, ignored);
}

result<void> run_directory::write(std::string_view name, std::string_view content) const {
  auto file = open(name);
  if (!file) return failure{file.error()};
  (*file)->write(content);
  return (*file)->commit();
}

result<std::unique_ptr<output_file>> run_directory::open(std::string_view name) const {
  return output_file::create(file(name));
}

result<void> write_file(const fs::path& path, std::string_view content) {
  std::ofstream out(path, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!out.flush())
    return failure{fmt::format("'{}' cannot be written: {}", path.string(), std::strerror(errno))};
  return {};
}

result<std::string> read_file(const fs::path& path) {
  std::FILE* file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr)
    return failure{fmt::format("cannot open '{}': {}", path.string(), std::strerror(errno))};
  std::string out;
  char buffer[65536];
  for (std::size_t count; (count = std::fread(buffer, 1, sizeof(buffer), file)) > 0;)
    out.append(buffer, count);
  const bool bad = std::ferror(file) != 0;
  const int code = errno;
  std::fclose(file);
  if (bad) return failure{fmt::format("cannot read '{}': {}", path.string(), std::strerror(code))};
  return out;
}

} // namespace shoal::scenarios
