// The coder `kmeans`: codebook.hpp.
#include "kernels/learn/pictures/codebook.hpp"
#include "kernels/learn/pictures/picture_coder.hpp"

#include <utility>

namespace shoal::learn {

namespace {

class kmeans_pictures final : public picture_coder {
public:
  explicit kmeans_pictures(codebook book) : picture_coder(book.grid()), book_(std::move(book)) {}

  std::string_view kind() const noexcept override { return "kmeans"; }
  std::vector<token_id> encode(const picture& from) const override { return book_.encode(from); }
  picture decode(std::span<const token_id> codes) const override { return book_.decode(codes); }
  const std::vector<float>& values() const noexcept override { return book_.entries; }

private:
  codebook book_;
};

made_coder train_kmeans_coder(std::span<const picture> pictures, const coder_training& options,
                              const coder_progress& progress) {
  auto book = train_codebook(pictures, {options.patch, options.codes, options.passes, options.seed},
                             progress);
  if (!book) return failure{book.error()};
  return made_coder{std::make_shared<const kmeans_pictures>(std::move(*book))};
}

made_coder read_kmeans_coder(const coder_grid& grid, const coder_sizes&,
                             std::vector<float> values) {
  if (values.size() != grid.codes * grid.patch_values())
    return failure{"its size does not agree with its header"};
  return made_coder{
      std::make_shared<const kmeans_pictures>(codebook{grid.patch, grid.side, std::move(values)})};
}

} // namespace

picture_coder_kind kmeans_coder() {
  return {"kmeans", "the mean of each kind of patch, found by k-means", 12, train_kmeans_coder,
          read_kmeans_coder};
}

} // namespace shoal::learn
