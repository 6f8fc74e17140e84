// The files of keys and certificates: their names, and functions to read and write them. A secret
// is never readable for other users, and a file is replaced as a whole or not at all.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/secret_text.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace shoal::netem::wire {

inline constexpr std::string_view node_key_file = "node.key"; ///< the node's secret
inline constexpr std::string_view node_certificate_file = "node.crt";
/// The moderator's certificate. Nodes and the moderator have it.
inline constexpr std::string_view swarm_certificate_file = "swarm.crt";
/// Nodes and the moderator have it.
inline constexpr std::string_view revocation_list_file = "revoked.crl";
inline constexpr std::string_view moderator_key_file = "moderator.key"; ///< the moderator's secret
inline constexpr std::string_view admitted_file = "admitted.csv";       ///< the moderator's record

/// Makes the failure "'path': why".
failure in_file(const std::filesystem::path& path, const std::string& why);

/// Errors: the file cannot be opened or read, is not a regular file, or is larger than 16 MiB.
result<std::string> read_text(const std::filesystem::path& path);

/// Like read_text(), for a file that decides whom this program trusts.
/// Errors: as read_text(); another user owns the file or may write it.
result<std::string> read_trusted(const std::filesystem::path& path);

/// Like read_text(), for a file that may contain a secret.
result<secret_text> read_wiped(const std::filesystem::path& path);

/// Errors: as read_text(); group or others have any permission on the file; another user owns it.
result<secret_text> read_secret(const std::filesystem::path& path);

/// Writes the whole file, and replaces an existing one atomically. Errors: the file cannot be
/// written; the old file stays.
result<void> write_text(const std::filesystem::path& path, std::string_view text);

/// A folder that appears with all its files at commit(), or not at all. The folder has mode 0700
/// and secrets in it have mode 0600 from their creation.
class new_folder {
public:
  /// Errors: `path` exists and is not an empty folder; the folder cannot be created.
  static result<new_folder> create(const std::filesystem::path& path);
  ~new_folder();
  new_folder(new_folder&& other) noexcept;
  new_folder& operator=(new_folder&&) = delete;

  result<void> write(std::string_view name, std::string_view text);
  result<void> write(std::string_view name, const secret_text& secret);
  result<void> commit();

private:
  new_folder(std::filesystem::path path, std::filesystem::path partial)
      : path_(std::move(path)), partial_(std::move(partial)) {}
  std::filesystem::path path_, partial_; // `partial_` is empty after commit()
};

/// An exclusive lock on a folder, held for the object's life. The operating system releases the
/// lock of a process that dies.
class folder_lock {
public:
  /// Waits for the lock. Errors: there is no such folder.
  static result<folder_lock> take(const std::filesystem::path& folder);
  ~folder_lock();
  folder_lock(folder_lock&& other) noexcept;
  folder_lock& operator=(folder_lock&&) = delete;

private:
  explicit folder_lock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_; // -1 after a move
};

} // namespace shoal::netem::wire
