#include "netem/wire/moderator_folder.hpp"

#include "kernels/base/text_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace shoal::netem::wire {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view header = "name,serial,from,until,key\n",
                           header_without_keys = "name,serial,from,until\n";

std::string text_of(const std::vector<admission_record>& everybody) {
  std::string out(header);
  for (const admission_record& one : everybody)
    out += fmt::format("{},{},{},{},{}\n", one.name, one.serial, utc_text(one.from_utc_ns),
                       utc_text(one.until_utc_ns), one.key);
  return out;
}

bool is_hexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

result<admission_record> read_row(std::string_view line, bool with_key) {
  std::array<std::string_view, 5> fields;
  const std::size_t count = with_key ? 5 : 4;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t end = i + 1 < count ? line.find(',') : line.size();
    if (end == std::string_view::npos)
      return failure{fmt::format("expected name,serial,from,until{}", with_key ? ",key" : "")};
    fields[i] = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  if (auto fine = check_name(fields[0]); !fine) return failure{fine.error()};
  if (fields[1].empty() || fields[1].size() > 40 || !is_hexadecimal(fields[1]))
    return failure{"the serial is not one of up to 40 hexadecimal digits"};
  const auto from = parse_utc(fields[2]), until = parse_utc(fields[3]);
  if (!from || !until) return failure{from ? until.error() : from.error()};
  if (!fields[4].empty() && (fields[4].size() != 64 || !is_hexadecimal(fields[4])))
    return failure{"the key is not one of 64 hexadecimal digits"};
  return admission_record{std::string(fields[0]), std::string(fields[1]), *from, *until,
                          std::string(fields[4])};
}

bool same_but_for_capitals(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

} // namespace

result<std::vector<admission_record>> read_admitted(std::string_view csv) {
  const bool with_key = csv.starts_with(header);
  if (!with_key && !csv.starts_with(header_without_keys))
    return failure{"line 1: expected 'name,serial,from,until,key'"};
  csv.remove_prefix(with_key ? header.size() : header_without_keys.size());
  std::vector<admission_record> out;
  for (std::size_t line = 2; !csv.empty(); ++line) {
    const std::size_t end = csv.find('\n');
    if (end == std::string_view::npos) return failure{fmt::format("line {}: cut off", line)};
    auto row = read_row(csv.substr(0, end), with_key);
    if (!row) return failure{fmt::format("line {}: {}", line, row.error())};
    out.push_back(*std::move(row));
    csv.remove_prefix(end + 1);
  }
  return out;
}

result<void> moderator_folder::make(const fs::path& path, std::string_view swarm,
                                    std::int64_t utc_ns, duration validity) {
  const auto keys = moderator::make(swarm, utc_ns, validity);
  if (!keys) return failure{keys.error()};
  auto folder = new_folder::create(path);
  if (!folder) return failure{folder.error()};
  if (auto done = folder->write(moderator_key_file, keys->key_pem()); !done) return done;
  if (auto done = folder->write(swarm_certificate_file, keys->certificate_pem()); !done)
    return done;
  if (auto done = folder->write(revocation_list_file, keys->first_list(utc_ns)); !done) return done;
  if (auto done = folder->write(admitted_file, text_of({})); !done) return done;
  return folder->commit();
}

result<moderator_folder> moderator_folder::open(const fs::path& path, std::int64_t utc_ns) {
  std::error_code error;
  for (const std::string_view name :
       {moderator_key_file, swarm_certificate_file, revocation_list_file, admitted_file})
    if (!fs::exists(path / name, error) && !error)
      return failure{fmt::format(
          "'{}' is not a moderator's folder: it has no {}; 'shoal keys init DIR' makes one",
          path.string(), name)};
  auto lock = folder_lock::take(path);
  if (!lock) return failure{lock.error()};
  const auto key = read_secret(path / moderator_key_file);
  if (!key) return failure{key.error()};
  const auto certificate = read_text(path / swarm_certificate_file);
  if (!certificate) return failure{certificate.error()};
  auto keys = moderator::read(key->view(), *certificate, utc_ns);
  if (!keys) return in_file(path, keys.error());
  const auto list = read_text(path / revocation_list_file);
  if (!list) return failure{list.error()};
  auto revoked = revocation_list::read(*list, *certificate);
  if (!revoked) return in_file(path / revocation_list_file, revoked.error());
  const auto csv = read_text(path / admitted_file);
  if (!csv) return failure{csv.error()};
  auto everybody = read_admitted(*csv);
  if (!everybody) return in_file(path / admitted_file, everybody.error());
  return moderator_folder(path, *std::move(lock), *std::move(keys), *std::move(revoked),
                          *std::move(everybody));
}

moderator_folder::moderator_folder(fs::path path, folder_lock lock, moderator keys,
                                   revocation_list revoked, std::vector<admission_record> everybody)
    : path_(std::move(path)), lock_(std::move(lock)), moderator_(std::move(keys)),
      revoked_(std::move(revoked)), admitted_(std::move(everybody)) {}

result<std::string> moderator_folder::admit(std::string_view name, const public_key_bytes& key,
                                            std::int64_t utc_ns, duration validity, bool operates) {
  for (const admission_record& one : admitted_)
    if (one.name != name && same_but_for_capitals(one.name, name))
      return failure{fmt::format(
          "'{}' differs from '{}', an admitted node, only in capitals: TLS takes them for the same",
          name, one.name)};
  auto pem = moderator_.admit(name, key, utc_ns, validity, operates);
  if (!pem) return failure{pem.error()};
  const auto facts = read_certificate(*pem);
  SHOAL_CHECK(facts.ok(), "a new certificate cannot be read");
  admitted_.push_back(
      {facts->name, facts->serial, facts->not_before_utc_ns, facts->not_after_utc_ns, hex_of(key)});
  if (auto written = write_text(path_ / admitted_file, text_of(admitted_)); !written) {
    admitted_.pop_back();
    return failure{written.error()};
  }
  return pem;
}

result<void> moderator_folder::revoke(const std::vector<std::string>& serials,
                                      std::int64_t utc_ns) {
  const auto pem = moderator_.revoke(revoked_, serials, utc_ns);
  if (!pem) return failure{pem.error()};
  if (auto written = write_text(path_ / revocation_list_file, *pem); !written) return written;
  auto read = revocation_list::read(*pem, moderator_.certificate_pem());
  SHOAL_CHECK(read.ok(), "a new revocation list cannot be read");
  revoked_ = *std::move(read);
  return {};
}

} // namespace shoal::netem::wire
