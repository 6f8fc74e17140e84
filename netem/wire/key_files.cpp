#include "netem/wire/key_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace shoal::netem::wire {

namespace fs = std::filesystem;

namespace {

constexpr mode_t secret_mode = 0600, public_mode = 0644;
constexpr std::size_t largest_file_bytes = 16 << 20;

failure cannot(const char* what, const fs::path& path, int code) {
  return {fmt::format("cannot {} '{}': {}", what, path.string(), std::strerror(code))};
}

class descriptor {
public:
  explicit descriptor(int number) : number_(number) {}
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  int get() const noexcept { return number_; }
  int release() noexcept { return std::exchange(number_, -1); }

private:
  int number_;
};

enum class access : std::uint8_t { any, only_we_write, only_we_read };

/// Reads a file into memory that is wiped, whether it is a secret or not.
result<secret_text> read(const fs::path& path, access wanted) {
  // Without O_NONBLOCK, a named pipe at this path would block the program.
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return cannot("open", path, errno);
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return cannot("read", path, errno);
  if (!S_ISREG(facts.st_mode)) return failure{fmt::format("'{}' is not a file", path.string())};
  if (wanted != access::any && facts.st_uid != ::geteuid() && facts.st_uid != 0)
    return failure{fmt::format("'{}' belongs to another user, who could change it; copy it to a "
                               "folder of your own",
                               path.string())};
  if (wanted == access::only_we_write && (facts.st_mode & 022) != 0)
    return failure{fmt::format("'{}' decides whom this program trusts, and its mode {:04o} lets "
                               "others write it; 'chmod go-w {}' prevents that",
                               path.string(), static_cast<unsigned>(facts.st_mode & 07777),
                               path.string())};
  if (wanted == access::only_we_read && (facts.st_mode & 077) != 0)
    return failure{fmt::format(
        "'{}' is a secret, and its mode {:04o} lets others in; 'chmod 600 {}' makes it yours alone",
        path.string(), static_cast<unsigned>(facts.st_mode & 07777), path.string())};
  if (static_cast<std::uintmax_t>(facts.st_size) > largest_file_bytes)
    return failure{fmt::format("'{}' has {} bytes; a key file has at most {}", path.string(),
                               facts.st_size, largest_file_bytes)};
  secret_text out(static_cast<std::size_t>(facts.st_size));
  for (std::size_t got = 0; got < out.size();) {
    const ssize_t count = ::read(file.get(), out.bytes().data() + got, out.size() - got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot("read", path, errno);
    if (count == 0)
      return failure{fmt::format("'{}' became shorter while it was read", path.string())};
    got += static_cast<std::size_t>(count);
  }
  return out;
}

/// Writes a new file. Errors: the file exists.
result<void> write_new(const fs::path& path, std::string_view text, mode_t mode) {
  descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (file.get() < 0) return cannot("create", path, errno);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(file.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot("write", path, errno);
    done += static_cast<std::size_t>(count);
  }
  if (::fsync(file.get()) != 0) return cannot("write", path, errno);
  if (::close(file.release()) != 0) return cannot("write", path, errno);
  return {};
}

} // namespace

failure in_file(const fs::path& path, const std::string& why) {
  return {fmt::format("'{}': {}", path.string(), why)};
}

result<std::string> read_text(const fs::path& path) {
  auto out = read(path, access::any);
  if (!out) return failure{out.error()};
  return std::string(out->view());
}

result<std::string> read_trusted(const fs::path& path) {
  auto out = read(path, access::only_we_write);
  if (!out) return failure{out.error()};
  return std::string(out->view());
}

result<secret_text> read_wiped(const fs::path& path) {
  return read(path, access::any);
}

result<secret_text> read_secret(const fs::path& path) {
  return read(path, access::only_we_read);
}

result<void> write_text(const fs::path& path, std::string_view text) {
  fs::path partial = path;
  partial += ".partial";
  std::error_code ignored;
  fs::remove(partial, ignored); // left by an earlier attempt that was killed
  auto written = write_new(partial, text, public_mode);
  if (written && std::rename(partial.c_str(), path.c_str()) != 0)
    written = cannot("rename to", path, errno);
  if (!written) fs::remove(partial, ignored);
  return written;
}

result<new_folder> new_folder::create(const fs::path& wanted) {
  std::error_code error;
  fs::path path = wanted.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::directory) {
    if (!fs::is_empty(path, error)) {
      if (error) return failure{fmt::format("cannot use '{}': {}", path.string(), error.message())};
      return failure{fmt::format(
          "'{}' exists and is not empty; name a folder that does not exist yet", path.string())};
    }
    if (fs::equivalent(path, ".", error))
      return failure{fmt::format("'{}' is the folder you are in; name one that does not exist yet",
                                 path.string())};
  } else if (status.type() != fs::file_type::not_found) {
    return failure{fmt::format("'{}' exists and is not a folder", path.string())};
  }
  if (path.has_parent_path()) {
    fs::create_directories(path.parent_path(), error);
    if (error)
      return failure{
          fmt::format("cannot create '{}': {}", path.parent_path().string(), error.message())};
  }
  std::string partial = path.string() + ".partial-XXXXXX";
  if (::mkdtemp(partial.data()) == nullptr) return cannot("create", path, errno);
  return new_folder(std::move(path), std::move(partial));
}

new_folder::~new_folder() {
  std::error_code ignored;
  if (!partial_.empty()) fs::remove_all(partial_, ignored);
}

new_folder::new_folder(new_folder&& other) noexcept
    : path_(std::move(other.path_)), partial_(std::move(other.partial_)) {
  other.partial_.clear();
}

result<void> new_folder::write(std::string_view name, std::string_view text) {
  return write_new(partial_ / name, text, public_mode);
}

result<void> new_folder::write(std::string_view name, const secret_text& secret) {
  return write_new(partial_ / name, secret.view(), secret_mode);
}

result<void> new_folder::commit() {
  if (std::rename(partial_.c_str(), path_.c_str()) != 0) return cannot("create", path_, errno);
  partial_.clear();
  return {};
}

result<folder_lock> folder_lock::take(const fs::path& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return cannot("open", folder, errno);
  folder_lock out(file);
  while (::flock(file, LOCK_EX) != 0)
    if (errno != EINTR) return cannot("lock", folder, errno);
  return out;
}

folder_lock::~folder_lock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

folder_lock::folder_lock(folder_lock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

} // namespace shoal::netem::wire
