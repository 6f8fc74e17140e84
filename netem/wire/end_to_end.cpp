#include "netem/wire/end_to_end.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"
#include "netem/fabric.hpp"
#include "netem/wire/certificates.hpp"
#include "netem/wire/context.hpp"
#include "netem/wire/revocation.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace shoal::netem::wire {

namespace {

constexpr std::size_t longest_certificate = 8192;
/// The first frame may be a refusal or a revocation list.
constexpr std::size_t longest_first = longest_revocation_list + 1024;
constexpr std::size_t sealed_head = 8; // keeps the contents at a multiple of eight
constexpr std::size_t tag = crypto_aead_chacha20poly1305_ietf_ABYTES;

std::string all_bytes(const frame& what) {
  std::string out(what.head.begin(), what.head.end());
  for (const auto& part : what.behind) {
    if (part.is_size_only())
      out.append(part.size(), '\0');
    else
      out.append(reinterpret_cast<const char*>(part.bytes().data()), part.size());
  }
  return out;
}

template <class Key>
std::string_view text_of(const Key& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>
nonce_of(std::uint64_t number) {
  std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES> out{};
  std::memcpy(out.data(), &number, sizeof(number));
  return out;
}

template <class Key>
std::vector<std::byte> statement(bool dialled, std::uint8_t which, const node_key& sender,
                                 const node_key& receiver, std::uint64_t link, const Key& own,
                                 const Key& theirs, std::string_view first) {
  frame_writer fields(frame_kind::greeting);
  fields.put(static_cast<std::uint8_t>(dialled)).put(which).put(sender).put(receiver).put(link);
  fields.put(text_of(own)).put(text_of(theirs));
  const auto hash = hash_of(std::as_bytes(std::span(first)));
  fields.put(text_of(hash.bytes));
  std::string all = "shoal.relayed_link";
  all += '\0';
  const auto head = fields.done().head;
  all.append(head.begin(), head.end());
  const auto bytes = std::as_bytes(std::span(all));
  return {bytes.begin(), bytes.end()};
}

} // namespace

end_to_end::end_to_end(own_keys keys, const relayed_ends& ends)
    : keys_(std::move(keys)), ends_(ends) {
  SHOAL_CHECK(sodium_init() >= 0, "libsodium starts");
  crypto_kx_keypair(own_public_.data(), own_secret_.data());
}

end_to_end::~end_to_end() {
  for (auto* secret : {&own_secret_, &receive_, &send_})
    sodium_memzero(secret->data(), secret->size());
}

frame end_to_end::greeting(const frame& first) {
  const auto inner = all_bytes(first);
  const auto made = keys_.key->sign(statement(ends_.dialled, ends_.which, ends_.own, ends_.other,
                                              ends_.link, own_public_, their_public_, inner));
  return frame_writer(frame_kind::greeting)
      .put(text_of(own_public_))
      .put(text_of(made))
      .put(std::string_view(keys_.certificate))
      .put(std::string_view(inner))
      .done();
}

std::optional<frame> end_to_end::protect(const frame& what) {
  if (!std::exchange(greeted_, true)) return greeting(what);
  if (!agreed_) return {};
  const auto plain = all_bytes(what);
  frame out;
  out.head.resize(sealed_head + plain.size() + tag);
  out.head[0] = static_cast<char>(frame_kind::sealed);
  const auto nonce = nonce_of(sent_++);
  crypto_aead_chacha20poly1305_ietf_encrypt(
      reinterpret_cast<unsigned char*>(out.head.data()) + sealed_head, nullptr,
      reinterpret_cast<const unsigned char*>(plain.data()), plain.size(), nullptr, 0, nullptr,
      nonce.data(), send_.data());
  return out;
}

void end_to_end::agree() {
  const auto made =
      ends_.dialled
          ? crypto_kx_client_session_keys(receive_.data(), send_.data(), own_public_.data(),
                                          own_secret_.data(), their_public_.data())
          : crypto_kx_server_session_keys(receive_.data(), send_.data(), own_public_.data(),
                                          own_secret_.data(), their_public_.data());
  agreed_ = made == 0;
  sodium_memzero(own_secret_.data(), own_secret_.size());
}

std::optional<payload> end_to_end::open_greeting(const payload& came) {
  frame_reader in(came.bytes());
  if (in.get<std::uint8_t>() != static_cast<std::uint8_t>(frame_kind::greeting)) return {};
  const auto key = in.text(32), signature = in.text(64);
  auto certificate = in.text(longest_certificate);
  const auto inner = in.text(longest_first);
  if (!in.finished() || key.size() != their_public_.size() || inner.empty()) return {};
  const auto facts = read_certificate(certificate);
  if (!facts) return {};
  // The key must be the one that made the node id, or anybody with a certificate could greet.
  const std::string identity(text_of(facts->public_key));
  if (key_of(fabric::node_of(identity, ends_.other.incarnation)) != ends_.other) return {};
  key_bytes theirs{};
  std::memcpy(theirs.data(), key.data(), theirs.size());
  // The side that dialled has greeted before, so the answer names its key.
  const auto answered = ends_.dialled ? own_public_ : key_bytes{};
  const auto said = statement(!ends_.dialled, ends_.which, ends_.other, ends_.own, ends_.link,
                              theirs, answered, inner);
  if (!verify(facts->public_key, said, std::as_bytes(std::span(signature)))) return {};
  their_public_ = theirs;
  agree();
  if (!agreed_) return {};
  certificate_ = std::move(certificate);
  const auto bytes = std::as_bytes(std::span(inner));
  return payload{std::vector<std::byte>(bytes.begin(), bytes.end())};
}

std::optional<payload> end_to_end::open(const payload& came) {
  if (!agreed_) return open_greeting(came);
  const auto bytes = came.bytes();
  if (bytes.size() <= sealed_head + tag ||
      std::to_integer<std::uint8_t>(bytes[0]) != static_cast<std::uint8_t>(frame_kind::sealed))
    return {};
  std::vector<std::byte> out(bytes.size() - sealed_head - tag);
  const auto nonce = nonce_of(received_++);
  const auto* sealed = reinterpret_cast<const unsigned char*>(bytes.data()) + sealed_head;
  if (crypto_aead_chacha20poly1305_ietf_decrypt(
          reinterpret_cast<unsigned char*>(out.data()), nullptr, nullptr, sealed,
          bytes.size() - sealed_head, nullptr, 0, nonce.data(), receive_.data()) != 0)
    return {};
  return payload{std::move(out)};
}

} // namespace shoal::netem::wire
