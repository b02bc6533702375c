// Many names and small files at once, and variable records by their numbers, in C.
#include <algorithm>
#include <cstring>

#include "c_api/c_run.h"
#include "c_api/c_values.h"

using namespace pif::c_api;
using pif::Client;
using pif::File;
using pif::Result;
using pif::Status;

namespace {

// How each of many ended; the first that failed is what pif_error_text() tells.
class Outcomes {
 public:
  Outcomes(pif_errors& errors, int* codes, size_t count) : errors_(errors), codes_(codes), count_(count) {
    if (codes_ != nullptr) std::fill_n(codes_, count_, 0);
  }
  void failed(size_t i, const pif::Error& error) {
    if (++failures_ == 1) note(errors_, error);
    if (codes_ != nullptr) codes_[i] = -static_cast<int>(error.code);
  }
  uint64_t succeeded() const { return count_ - failures_; }

 private:
  pif_errors& errors_;
  int* codes_;
  size_t count_;
  size_t failures_ = 0;
};

Result<std::vector<std::string>> paths_of(const char* const* paths, size_t count) {
  std::vector<std::string> out;
  out.reserve(count);
  for (const char* path : std::span(paths, count)) {
    PIF_TRY(check({{"path", path}}));
    out.emplace_back(path);
  }
  return out;
}

Result<std::vector<Client::NewFile>> new_files(std::span<const pif_small_file> files,
                                               const pif_create_options* options) {
  PIF_TRY_VALUE(pif::CreateOptions chosen, options_of(options));
  chosen.is_small = true;
  std::vector<Client::NewFile> out;
  for (const pif_small_file& file : files) {
    PIF_TRY(check({{"path", file.path}, {"bytes", file.bytes, file.size}}));
    out.push_back({file.path, chosen});
  }
  return out;
}

// The bytes are cut behind each delimiter.
Status write_delimited(File& file, std::span<const std::byte> bytes) {
  std::vector<uint32_t> lengths;
  for (auto rest = bytes; !rest.empty(); rest = rest.subspan(lengths.back())) {
    const void* const found = std::memchr(rest.data(), file.format().delimiter, rest.size());
    const size_t length =
        found == nullptr ? rest.size() : static_cast<size_t>(static_cast<const std::byte*>(found) - rest.data()) + 1;
    if (length > UINT32_MAX) return pif::fail(pif::Code::kTooLarge, "a record is longer than 4 GiB");
    lengths.push_back(static_cast<uint32_t>(length));
  }
  return lengths.empty() ? Status() : file.write_batch(lengths, bytes);
}

Status fill(File& file, const pif_small_file& from) {
  const auto bytes = bytes_of(from.bytes, from.size);
  switch (file.format().kind) {
    case pif::RecordKind::kFixed: return bytes.empty() ? Status() : file.write(bytes);
    case pif::RecordKind::kDelimited: return write_delimited(file, bytes);
    default: return pif::fail(pif::Code::kInvalid, "variable records say nowhere where one ends: write_batch can");
  }
}

Result<uint64_t> put_many(Client& client, std::span<const pif_small_file> from, const pif_create_options* options,
                          Outcomes outcomes) {
  PIF_TRY_VALUE(const auto wanted, new_files(from, options));
  auto created = client.create_many(wanted);
  std::vector<File*> files;
  std::vector<size_t> which;
  for (size_t i = 0; i < from.size(); ++i) {
    const Status filled = created[i] ? fill(*created[i], from[i]) : Status(pif::fail(created[i].error()));
    if (filled) {
      files.push_back(&*created[i]);
      which.push_back(i);
    } else {
      outcomes.failed(i, filled.error());
    }
  }
  const auto committed = client.commit_many(files);
  for (size_t i = 0; i < files.size(); ++i) {
    if (!committed[i]) outcomes.failed(which[i], committed[i].error());
  }
  return outcomes.succeeded();
}

Result<uint64_t> get_many(Client& client, const std::vector<std::string>& paths, pif_bytes_function each, void* user,
                          Outcomes outcomes) {
  auto opened = client.open_small_many(paths);
  std::vector<File*> files;
  std::vector<size_t> which;
  for (size_t i = 0; i < opened.size(); ++i) {
    if (!opened[i]) {
      outcomes.failed(i, opened[i].error());
      continue;
    }
    files.push_back(&*opened[i]);
    which.push_back(i);
  }
  const auto contents = client.read_many(files);
  PIF_TRY(client.close_many(files));
  bool goes_on = true;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!contents[i])
      outcomes.failed(which[i], contents[i].error());
    else if (goes_on)
      goes_on = each(user, which[i], contents[i]->data(), contents[i]->size()) == 0;
  }
  return outcomes.succeeded();
}

template <typename Value, typename Put>
Result<uint64_t> each_outcome(const Result<std::vector<Value>>& all, Outcomes outcomes, const Put& put) {
  if (!all) return pif::fail(all.error());
  for (size_t i = 0; i < all->size(); ++i) {
    if ((*all)[i])
      put(i, (*all)[i]);
    else
      outcomes.failed(i, (*all)[i].error());
  }
  return outcomes.succeeded();
}

// How many numbers from the first on are consecutive.
size_t consecutive(std::span<const uint64_t> numbers) {
  size_t count = 1;
  while (count < numbers.size() && numbers[count] == numbers[0] + count && numbers[count] != 0) ++count;
  return count;
}

Result<uint64_t> read_lines(File& file, std::span<const uint64_t> numbers, std::span<std::byte> out,
                            uint32_t* lengths) {
  uint64_t done = 0;
  while (done < numbers.size() && !out.empty()) {
    const size_t wanted = consecutive(numbers.subspan(done));
    PIF_TRY_VALUE(const pif::RecordBatch batch, file.read_batch_at(numbers[done], wanted, out.size()));
    if (batch.lengths.empty()) {
      return pif::fail(pif::Code::kEndOfFile, "there is no record " + std::to_string(numbers[done]));
    }
    if (batch.data.size() > out.size()) {
      if (done > 0) break;
      return pif::fail(pif::Code::kTooLarge, "record " + std::to_string(numbers[0]) + " needs " +
                                                 std::to_string(batch.data.size()) + " bytes");
    }
    std::memcpy(out.data(), batch.data.data(), batch.data.size());
    std::copy(batch.lengths.begin(), batch.lengths.end(), lengths + done);
    out = out.subspan(batch.data.size());
    done += batch.lengths.size();
  }
  return done;
}

}  // namespace

extern "C" {

int64_t pif_stat_many(pif_connection* connection, const char* const* paths, size_t count, pif_stat_info* infos,
                      int* codes) {
  return count_with_client(connection, {{"paths", paths, count}, {"infos", infos, count}},
                           [&](Client& client) -> Result<uint64_t> {
                             PIF_TRY_VALUE(const auto all, paths_of(paths, count));
                             return each_outcome(client.stat_many(all), {*connection->errors, codes, count},
                                                 [&](size_t i, const auto& entry) { infos[i] = info_of(*entry); });
                           });
}
int64_t pif_remove_many(pif_connection* connection, const char* const* paths, size_t count, int* codes) {
  return count_with_client(connection, {{"paths", paths, count}}, [&](Client& client) -> Result<uint64_t> {
    PIF_TRY_VALUE(const auto all, paths_of(paths, count));
    return each_outcome(client.remove_many(all), {*connection->errors, codes, count}, [](size_t, const auto&) {});
  });
}
int64_t pif_put_many(pif_connection* connection, const pif_small_file* files, size_t count,
                     const pif_create_options* options, int* codes) {
  return count_with_client(connection, {{"files", files, count}}, [&](Client& client) {
    return put_many(client, {files, count}, options, {*connection->errors, codes, count});
  });
}
int64_t pif_get_many(pif_connection* connection, const char* const* paths, size_t count, pif_bytes_function each,
                     void* user, int* codes) {
  return count_with_client(connection, {{"paths", paths, count}, {"each", each}},
                           [&](Client& client) -> Result<uint64_t> {
                             PIF_TRY_VALUE(const auto all, paths_of(paths, count));
                             return get_many(client, all, each, user, {*connection->errors, codes, count});
                           });
}

int64_t pif_read_lines(pif_file* file, const uint64_t* numbers, size_t count, void* out, size_t out_bytes,
                       uint32_t* lengths) {
  return with_file(file, {{"numbers", numbers, count}, {"out", out, out_bytes}, {"lengths", lengths, count}},
                   [&](File& f) {
                     return read_lines(f, {numbers, count}, bytes_of(out, out_bytes), lengths);
                   });
}

}  // extern "C"
