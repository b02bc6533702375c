#include "training.h"

#include <algorithm>
#include <vector>

#include <zdict.h>

#include "pif/tool/read_records.h"

namespace pif::compress {
namespace {

constexpr std::uint64_t kPlaces = 64;               // of the file that samples are from
constexpr std::size_t kSampleBytes = 512u << 10;    // of all; training takes time
constexpr std::uint64_t kLongRecord = 8u << 10;     // on the average; such ones do without
constexpr std::size_t kDictionaryBytesMin = 256;    // by zstd
constexpr std::uint64_t kLeastBytes = 16u << 10;    // a file of fewer is not worth a dictionary
constexpr std::size_t kSharePerDictionaryByte = 8;  // samples, and of a small file all records

struct Samples {
  std::vector<std::byte> data;
  std::vector<std::size_t> sizes;
};

Result<Samples> read_samples(File& file, const FileLength& file_length) {
  const std::uint64_t average = std::max<std::uint64_t>(file_length.bytes / file_length.records, 1);
  const std::uint64_t at_once = std::max<std::uint64_t>(kSampleBytes / kPlaces / average, 1);
  const std::uint64_t places = std::clamp<std::uint64_t>(file_length.records / at_once, 1, kPlaces);
  Samples samples;
  for (std::uint64_t i = 0; i < places; ++i) {
    const RecordNumber begin = file_length.records / places * i;
    PIF_TRY_VALUE(const RecordBatch batch,
                  tool::read_records(file, file_length, begin, std::min(at_once, file_length.records - begin)));
    samples.data.insert(samples.data.end(), batch.data.begin(), batch.data.end());
    samples.sizes.insert(samples.sizes.end(), batch.lengths.begin(), batch.lengths.end());
  }
  return samples;
}

}  // namespace

Result<std::string> train_dictionary(File& file, const FileLength& file_length, std::size_t bytes_max) {
  std::string dictionary;
  if (file_length.bytes < kLeastBytes || file_length.bytes / file_length.records > kLongRecord) return dictionary;
  PIF_TRY_VALUE(const Samples samples, read_samples(file, file_length));
  dictionary.resize(std::min(bytes_max, samples.data.size() / kSharePerDictionaryByte));
  if (dictionary.size() < kDictionaryBytesMin) return std::string();
  const std::size_t size = ZDICT_trainFromBuffer(dictionary.data(), dictionary.size(), samples.data.data(),
                                                 samples.sizes.data(), static_cast<unsigned>(samples.sizes.size()));
  dictionary.resize(ZDICT_isError(size) ? 0 : size);
  return dictionary;
}

}  // namespace pif::compress
