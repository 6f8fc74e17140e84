// For any bytes, readers return an error or the contents that the moderator signed.
#include "kernels/base/rng.hpp"
#include "netem/wire/moderator_folder.hpp"
#include "tests/netem/wire/swarm.hpp"

#include <array>
#include <functional>
#include <vector>

using namespace shoal;
using namespace shoal::netem::wire;

namespace {

/// A text and its reader. `taken` is true if the reader accepted the text.
struct reader {
  const char* what;
  std::string text;
  std::function<bool(const std::string&)> taken;
};

struct readers {
  moderator reef = new_moderator();
  signing_key key = signing_key::make();
  std::string certificate = admit(reef, "lab-3", key);
  certificate_facts facts = *read_certificate(certificate);
  std::vector<reader> all;

  readers() {
    const auto same = [this](const certificate_facts& read) {
      return read.name == facts.name && read.serial == facts.serial &&
             read.public_key == facts.public_key && read.not_after_utc_ns == facts.not_after_utc_ns;
    };
    // Some bits of base64 have no meaning, so a changed text may still be the same certificate. It
    // must not be another one.
    all.push_back({"certificate", certificate, [this, same](const std::string& text) {
                     const bool issued = check_issued(text, reef.certificate_pem(), now).ok();
                     if (issued) CHECK(same(*read_certificate(text)));
                     return issued;
                   }});
    all.push_back(
        {"moderator's certificate", reef.certificate_pem(), [this](const std::string& text) {
           const bool taken = check_moderator(text, now).ok();
           if (taken) CHECK(read_certificate(text)->public_key == reef.facts().public_key);
           return taken;
         }});
    all.push_back({"request", make_request("lab-3", key), [this](const std::string& text) {
                     const auto read = read_request(text);
                     if (read)
                       CHECK((read->name == "lab-3" && read->public_key == key.public_key()));
                     return read.ok();
                   }});
    const std::string list =
        *reef.revoke(read_list(reef, reef.first_list(now)), std::vector{facts.serial}, now);
    all.push_back({"revocation list", list, [this](const std::string& text) {
                     const auto read = revocation_list::read(text, reef.certificate_pem());
                     if (read)
                       CHECK((read->number() == 2 && read->revoked(facts.serial) &&
                              read->entries().size() == 1));
                     return read.ok();
                   }});
    // A changed private key is another key. A comparison with the certificate shows whether the key
    // fits.
    all.push_back({"key", std::string(key.pem().view()), [this](const std::string& text) {
                     const auto read = signing_key::read(text);
                     return read.ok() && read->public_key() == key.public_key();
                   }});
  }
};

/// Decodes the bytes inside the block. encoded() puts bytes back into the block.
std::string decoded(const std::string& pem) {
  const std::size_t first = pem.find('\n') + 1;
  std::string base64;
  for (char c : pem.substr(first, pem.find("-----END") - first))
    if (c != '\n') base64 += c;
  std::string out(base64.size(), '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(base64.data()),
                                   static_cast<int>(base64.size()));
  REQUIRE(size > 0);
  out.resize(static_cast<std::size_t>(size) - (base64.ends_with("==")  ? 2
                                               : base64.ends_with('=') ? 1
                                                                       : 0));
  return out;
}

std::string encoded(const std::string& like, const std::string& der) {
  std::string base64(4 * der.size() / 3 + 8, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(base64.data()),
                                   reinterpret_cast<const unsigned char*>(der.data()),
                                   static_cast<int>(der.size()));
  base64.resize(static_cast<std::size_t>(size));
  std::string lines;
  for (std::size_t at = 0; at < base64.size(); at += 64) lines += base64.substr(at, 64) + '\n';
  return like.substr(0, like.find('\n') + 1) + lines + like.substr(like.find("-----END"));
}

} // namespace

TEST_CASE("every proper prefix of a text is refused") {
  readers of;
  for (const reader& one : of.all) {
    CAPTURE(one.what);
    CHECK(one.taken(one.text));
    const std::size_t last = one.text.rfind("-----\n") + 5; // the newline at the end is optional
    for (std::size_t size = 0; size < last; ++size) {
      CAPTURE(size);
      CHECK_FALSE(one.taken(one.text.substr(0, size)));
    }
  }
}

TEST_CASE("a flipped bit of the text is refused or changes nothing") {
  readers of;
  for (const reader& one : of.all) {
    CAPTURE(one.what);
    std::string text = one.text;
    for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
      (void)one.taken(text);
      text[bit / 8] = one.text[bit / 8];
    }
  }
}

TEST_CASE("a flipped bit or a cut inside the block is refused") {
  readers of;
  for (const reader& one : of.all) {
    CAPTURE(one.what);
    std::string der = decoded(one.text);
    REQUIRE(one.taken(encoded(one.text, der)));
    for (std::size_t bit = 0; bit < 8 * der.size(); ++bit) {
      CAPTURE(bit);
      der[bit / 8] = static_cast<char>(der[bit / 8] ^ (1 << bit % 8));
      // OpenSSL ignores the version of a key (byte 4), so the key is the same.
      const bool means_nothing = one.what == std::string("key") && bit / 8 == 4;
      CHECK(one.taken(encoded(one.text, der)) == means_nothing);
      der[bit / 8] = static_cast<char>(der[bit / 8] ^ (1 << bit % 8));
    }
    for (std::size_t size = 0; size < der.size(); ++size)
      CHECK_FALSE(one.taken(encoded(one.text, der.substr(0, size))));
    CHECK_FALSE(one.taken(encoded(one.text, der + '\0')));
  }
}

TEST_CASE("noise is refused") {
  readers of;
  rng random = stream(8, "noise");
  for (const reader& one : of.all) {
    CAPTURE(one.what);
    const std::string der = decoded(one.text);
    for (int round = 0; round < 300; ++round) {
      std::string noise(1 + random.below(600), '\0');
      for (char& c : noise) c = static_cast<char>(random.below(256));
      CHECK_FALSE(one.taken(noise));
      CHECK_FALSE(one.taken(encoded(one.text, noise)));
      // Replaces a piece of the block by noise.
      std::string mixed = der;
      const std::size_t at = random.below(der.size());
      const std::size_t removed = random.below(40);
      mixed.replace(at, removed, noise.substr(0, random.below(40)));
      if (mixed.size() > 4) mixed[4] = der[4]; // OpenSSL ignores the version
      if (mixed != der) CHECK_FALSE(one.taken(encoded(one.text, mixed)));
    }
    CHECK_FALSE(one.taken(std::string(70'000, '-')));
    CHECK_FALSE(one.taken(std::string(17 << 20, 'A')));
    CHECK_FALSE(one.taken(std::string(1000, '\0')));
    // The header announces 4 GB that never come.
    CHECK_FALSE(one.taken(encoded(one.text, "\x30\x84\xff\xff\xff\xff\x30\x84")));
  }
}

TEST_CASE("a damaged list of admitted nodes is refused with its line") {
  const std::string good =
      "name,serial,from,until\nlab-3,ab12,2026-11-21T20:55:00Z,2026-12-21T21:00:00Z\n";
  const auto read = read_admitted(good);
  REQUIRE((read.ok() && read->size() == 1));
  CHECK(read->front().serial == "ab12");
  CHECK(read_admitted("").error() == "line 1: expected 'name,serial,from,until,key'");
  CHECK(read_admitted(good + "lab-4,ab").error() == "line 3: cut off");
  CHECK(read_admitted(good + "lab-4,ab\n").error() == "line 3: expected name,serial,from,until");
  CHECK(read_admitted(good + "lab-4,AB,2026-11-21T20:55:00Z,2026-12-21T21:00:00Z\n").error() ==
        "line 3: the serial is not one of up to 40 hexadecimal digits");
  CHECK(read_admitted(good + "lab-4,ab,now,2026-12-21T21:00:00Z\n").error() ==
        "line 3: not a time such as 2026-11-21T21:00:00Z");
  const std::string with_key =
      "name,serial,from,until,key\nlab-3,ab12,2026-11-21T20:55:00Z,2026-12-21T21:00:00Z,";
  CHECK(read_admitted(with_key + "\n")->front().key.empty());
  CHECK(read_admitted(with_key + std::string(64, 'a') + "\n")->front().key.size() == 64);
  CHECK(read_admitted(with_key + std::string(63, 'a') + "\n").error() ==
        "line 2: the key is not one of 64 hexadecimal digits");
  for (std::size_t size = 0; size < good.size(); ++size) {
    const auto part = read_admitted(good.substr(0, size));
    CHECK((!part.ok() || part->empty()));
  }
}
