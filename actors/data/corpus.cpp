#include "actors/data/corpus.hpp"

#include "kernels/base/check.hpp"

#include <cstring>
#include <utility>
#include <vector>

namespace shoal::actors {

bool corpus_root::has(const sample_range& range, const payload& bytes, const payload& proof) const {
  if (range.count == 0 || bytes.is_size_only() || proof.is_size_only() ||
      bytes.size() % range.count != 0 || proof.size() % sizeof(digest) != 0)
    return false;
  const auto size = bytes.size() / range.count;
  std::vector<digest> items;
  items.reserve(range.count);
  for (std::uint32_t i = 0; i < range.count; ++i)
    items.push_back(hash_tree::item(bytes.bytes().subspan(i * size, size)));
  std::vector<digest> beside(proof.size() / sizeof(digest));
  if (!beside.empty()) std::memcpy(beside.data(), proof.bytes().data(), proof.size());
  return hash_tree::proves(samples, root, sample_of(range.first), std::move(items), beside);
}

std::shared_ptr<const hash_tree> tree_of(const sample_source& from, std::uint64_t samples) {
  SHOAL_CHECK(samples > 0 && !from.is_size_only(), "a corpus has samples, and they have bytes");
  std::vector<digest> items;
  items.reserve(samples);
  std::vector<std::byte> one(from.sample_bytes());
  for (std::uint64_t i = 0; i < samples; ++i) {
    from.read(i, one);
    items.push_back(hash_tree::item(one));
  }
  return std::make_shared<const hash_tree>(std::move(items));
}

corpus::corpus(std::shared_ptr<const sample_source> from, std::shared_ptr<const hash_tree> tree,
               std::uint64_t first)
    : from_(std::move(from)), tree_(std::move(tree)), root_{tree_->size(), tree_->root(), first} {}

payload corpus::proof_of(const sample_range& range) const {
  const auto beside = tree_->proof(root_.sample_of(range.first), range.count);
  const auto bytes = std::as_bytes(std::span(beside));
  return payload{std::vector<std::byte>(bytes.begin(), bytes.end())};
}

} // namespace shoal::actors
