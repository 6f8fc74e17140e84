#include "netem/wire/pem.hpp"

#include "netem/wire/certificates.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/pem.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <limits>
#include <utility>

namespace shoal::netem::wire::pem {

namespace {

// A process that ends still has threads that close TLS connections (io_loop.hpp). OpenSSL's own
// clean-up at the end would take away what they use, so there is none. The first call of a process
// decides.
[[maybe_unused]] const bool lasts_to_the_end =
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr) == 1;

struct secret_block {
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;

  secret_block() = default;
  ~secret_block() {
    OPENSSL_secure_free(name);
    OPENSSL_secure_free(header);
    OPENSSL_secure_clear_free(data, static_cast<std::size_t>(size));
  }
  secret_block(const secret_block&) = delete;
  secret_block& operator=(const secret_block&) = delete;
};

template <class Object, class Read>
result<Object> read_object(std::string_view text, const char* label, std::size_t most, Read read) {
  const quiet errors;
  auto der = block(text, label, most);
  if (!der) return failure{der.error()};
  const auto* at = reinterpret_cast<const unsigned char*>(der->view().data());
  const auto* end = at + der->size();
  Object out(read(nullptr, &at, static_cast<long>(der->size())));
  if (out == nullptr || at != end) return failure{fmt::format("the {} is damaged", label)};
  return out;
}

std::string text_of(BIO& memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(&memory, &data);
  return {data, static_cast<std::size_t>(size)};
}

template <class Object, class Write>
std::string written(const Object& what, Write write) {
  const bio memory(BIO_new(BIO_s_mem()));
  must(memory != nullptr && write(memory.get(), &what) == 1, "OpenSSL cannot write PEM");
  return text_of(*memory);
}

} // namespace

result<secret_text> block(std::string_view text, std::string_view label, std::size_t most) {
  constexpr std::string_view begin = "-----BEGIN ";
  if (text.size() > most) return failure{fmt::format("larger than {} bytes, no {}", most, label)};
  const std::size_t first = text.find(begin);
  if (first == std::string_view::npos)
    return failure{fmt::format("no PEM block: expected '{}{}-----'", begin, label)};
  if (text.find(begin, first + 1) != std::string_view::npos)
    return failure{fmt::format("more than one PEM block: expected one {}", label)};
  const quiet errors;
  const bio memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  must(memory != nullptr, "OpenSSL has no memory");
  secret_block found;
  // The flag makes OpenSSL wipe its own buffers, too.
  if (PEM_read_bio_ex(memory.get(), &found.name, &found.header, &found.data, &found.size,
                      PEM_FLAG_SECURE) != 1)
    return failure{fmt::format("a damaged PEM block: expected a {}", label)};
  const std::string_view name = found.name;
  if (name == "ENCRYPTED PRIVATE KEY" || *found.header != '\0')
    return failure{"encrypted with a passphrase, which is not supported: the file's mode is what "
                   "protects a key"};
  if (name != label) {
    // The label comes from a stranger, so it is shown only if a terminal cannot obey it.
    const bool plain = std::all_of(name.begin(), name.end(),
                                   [](char c) { return (c >= 'A' && c <= 'Z') || c == ' '; });
    return failure{fmt::format("expected a {}, not {}", label,
                               plain && name.size() < 40 ? fmt::format("a {}", name) : "this")};
  }
  return secret_text(std::string_view(reinterpret_cast<const char*>(found.data),
                                      static_cast<std::size_t>(found.size)));
}

result<certificate> read_certificate(std::string_view text) {
  return read_object<certificate>(text, "CERTIFICATE", largest_certificate_bytes, d2i_X509);
}

result<request> read_request(std::string_view text) {
  return read_object<request>(text, "CERTIFICATE REQUEST", largest_certificate_bytes, d2i_X509_REQ);
}

result<revoked_list> read_revoked_list(std::string_view text) {
  return read_object<revoked_list>(text, "X509 CRL", largest_revocation_list_bytes, d2i_X509_CRL);
}

result<key> read_key(std::string_view text) {
  auto out = read_object<key>(text, "PRIVATE KEY", largest_certificate_bytes, d2i_AutoPrivateKey);
  if (out && !public_key(out->get()))
    return failure{"a key of another type: expected an Ed25519 key"};
  return out;
}

std::string write(const X509& what) {
  return written(what, PEM_write_bio_X509);
}
std::string write(const X509_REQ& what) {
  return written(what, PEM_write_bio_X509_REQ);
}
std::string write(const X509_CRL& what) {
  return written(what, PEM_write_bio_X509_CRL);
}

secret_text write(const EVP_PKEY& what) {
  const bio memory(BIO_new(BIO_s_secmem())); // OpenSSL wipes it at free
  must(memory != nullptr && PEM_write_bio_PKCS8PrivateKey(memory.get(), &what, nullptr, nullptr, 0,
                                                          nullptr, nullptr) == 1,
       "OpenSSL cannot write a key");
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return secret_text(std::string_view(data, static_cast<std::size_t>(size)));
}

result<std::string> common_name(const X509_NAME& name) {
  if (X509_NAME_entry_count(&name) != 1) return failure{"the name is not a common name (CN) alone"};
  const X509_NAME_ENTRY* entry = X509_NAME_get_entry(&name, 0);
  if (OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry)) != NID_commonName)
    return failure{"the name is not a common name (CN)"};
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(entry));
  if (size < 0) return failure{"the common name (CN) is not text"};
  std::string out(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
  OPENSSL_free(utf8);
  if (auto fine = check_name(out); !fine) return failure{fine.error()};
  return out;
}

void set_common_name(X509_NAME& name, std::string_view text) {
  must(X509_NAME_add_entry_by_NID(&name, NID_commonName, MBSTRING_UTF8,
                                  reinterpret_cast<const unsigned char*>(text.data()),
                                  static_cast<int>(text.size()), -1, 0) == 1,
       "OpenSSL cannot write a name");
}

std::optional<std::string> serial_text(const ASN1_INTEGER& serial) {
  const big_number number(ASN1_INTEGER_to_BN(&serial, nullptr));
  if (number == nullptr || BN_is_negative(number.get()) || BN_is_zero(number.get()) ||
      BN_num_bytes(number.get()) > 20)
    return std::nullopt;
  char* digits = BN_bn2hex(number.get());
  must(digits != nullptr, "OpenSSL has no memory");
  std::string out = digits;
  OPENSSL_free(digits);
  for (char& c : out)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

integer serial_from(std::string_view text) {
  if (text.empty() || text.size() > 40 ||
      text.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return nullptr;
  BIGNUM* number = nullptr;
  must(BN_hex2bn(&number, std::string(text).c_str()) > 0, "OpenSSL cannot read a number");
  const big_number owner(number);
  integer out(BN_to_ASN1_INTEGER(number, nullptr));
  must(out != nullptr, "OpenSSL has no memory");
  return BN_is_zero(number) ? nullptr : std::move(out);
}

result<std::int64_t> utc_ns(const ASN1_TIME& when) {
  using namespace std::chrono;
  std::tm parts{};
  if (ASN1_TIME_to_tm(&when, &parts) != 1) return failure{"an invalid time"};
  const sys_days day = year(parts.tm_year + 1900) / (parts.tm_mon + 1) / parts.tm_mday;
  const auto at =
      sys_seconds(day) + hours(parts.tm_hour) + minutes(parts.tm_min) + seconds(parts.tm_sec);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 1'000'000'000;
  return std::clamp<std::int64_t>(at.time_since_epoch().count(), -most, most) * 1'000'000'000;
}

time time_from(std::int64_t utc_ns) {
  const std::int64_t seconds = utc_ns / 1'000'000'000 - (utc_ns % 1'000'000'000 < 0 ? 1 : 0);
  time out(ASN1_TIME_set(nullptr, static_cast<std::time_t>(seconds)));
  must(out != nullptr, "OpenSSL cannot write a time");
  return out;
}

std::optional<std::array<std::byte, 32>> public_key(const EVP_PKEY* key) {
  std::array<std::byte, 32> out{};
  std::size_t size = out.size();
  if (key == nullptr || EVP_PKEY_get_id(key) != EVP_PKEY_ED25519 ||
      EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(out.data()), &size) != 1 ||
      size != out.size())
    return std::nullopt;
  return out;
}

} // namespace shoal::netem::wire::pem
