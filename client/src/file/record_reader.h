// Reading records of one open file, committed or being created.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pif/access/checked_read.h"
#include "pif/access/near_parity.h"
#include "pif/access/rebuilt_read.h"
#include "pif/access/requests.h"
#include "pif/client/client.h"

namespace pif::client {

class FileState;
using access::ReadPart;
using access::RowRange;

class RecordReader {
 public:
  explicit RecordReader(FileState& file) : file_(file) {}

  // ---- fixed records (record_reader.cc) ----
  [[nodiscard]] Result<std::uint64_t> read(RecordNumber first, std::span<std::byte> out, std::uint64_t count);
  // At least one record, all inside the file as it is known here; `out` has room for them.
  [[nodiscard]] Status read_known(RecordNumber first, std::span<std::byte> out, std::uint64_t records);
  [[nodiscard]] Status read_many(std::span<File::ReadRequest> requests);
  // Bytes [within, within + out.size()) of one record.
  [[nodiscard]] Status read_within(RecordNumber record, std::uint32_t within, std::span<std::byte> out);
  // All parts at once. Message requests are added to `requests` if given (and not waited for), else run here.
  [[nodiscard]] Status read_parts(std::span<const ReadPart> parts, access::Requests* requests);
  // The parts of a batch. Short rows of all LFSs lie close together in memory: each thread then takes a range of
  // records, not some of the LFSs, so that no two write to the same cache lines. They go by the length as clip() found
  // it.
  void add_parts(Range records, std::byte* out, std::vector<ReadPart>& parts_wanted);
  // Checks the request and cuts it to the file's end: records to read, which may be 0. Where there is memory for the
  // last record as it was known only, the known length stays.
  [[nodiscard]] Result<std::uint64_t> clip(RecordNumber first, std::size_t out_bytes, std::uint64_t count);

  // ---- variable records (variable_reader.cc) ----
  [[nodiscard]] Result<RecordBatch> read_batch(RecordNumber first, std::uint64_t count, std::size_t bytes_max);
  // Sum over all components of the end offsets before record n: the byte offsets of `records` in the byte view.
  [[nodiscard]] Result<std::vector<std::uint64_t>> byte_offsets(std::span<const RecordNumber> records);

  // The components of these LFSs, as they are read; those that are not open yet are attached at once.
  [[nodiscard]] Status open(std::span<const LfsIndex> lfss);
  // The same of a committed file, as two steps of requests that are added: the second when those of the first have run.
  void add_opens(access::Requests& requests, std::span<const LfsIndex> lfss);
  void add_parity_opens(access::Requests& requests, std::span<const LfsIndex> lfss);
  // Whether rows of an LFS that is open can be had through descriptors; and so.
  bool is_near(LfsIndex lfs) const;
  [[nodiscard]] Status read_near(const ReadPart& part) const;

 private:
  // Whole rows of all requests at once, each for itself.
  [[nodiscard]] Status read_each(std::span<File::ReadRequest> requests);
  // For a file being created that is written in pieces.
  [[nodiscard]] Result<std::uint64_t> read_scattered(RecordNumber first, std::span<std::byte> out, std::uint64_t count);
  [[nodiscard]] Status read_once(RecordNumber first, std::span<std::byte> out, std::uint64_t records);
  [[nodiscard]] Status read_within_once(RecordNumber record, std::uint32_t within, std::span<std::byte> out);
  [[nodiscard]] Result<std::vector<std::uint64_t>> byte_offsets_once(std::span<const RecordNumber> records);
  [[nodiscard]] Status fetch(Range records, std::size_t bytes_max, std::vector<access::FetchedRows>& fetched);
  [[nodiscard]] Status fetch_direct(const RowRange& rows, std::size_t bytes_max, access::FetchedRows& out,
                                    access::Requests& requests);
  // From a file being created by message it reads only rows that are not sent yet: kUnsupported for all others.
  [[nodiscard]] Status read_gathered(const ReadPart& part) const;
  [[nodiscard]] Status cannot_read_back(LfsIndex lfs) const;
  [[nodiscard]] Status read_all_direct(std::span<const ReadPart> parts, std::uint64_t bytes,
                                       access::Requests& messages);
  [[nodiscard]] Status read_within_by_message(const Cell& cell, std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Status read_within_rebuilt(const Cell& cell, std::uint64_t offset, std::span<std::byte> out,
                                           const Error& why);
  // Adds to sums[i] the bytes of the component before its row rows[i], from the lengths of rebuilt rows.
  [[nodiscard]] Status add_rebuilt_offsets(LfsIndex lfs, std::span<const Row> rows, std::vector<std::uint64_t>& sums,
                                           const Error& why);

  FileState& file_;
  std::unique_ptr<access::NearParity> near_parity_;  // null: no LFS was away
  std::vector<RowRange> ranges_;                     // scratch of a batch
  std::vector<ReadPart> parts_;                      // the same
  std::vector<LfsIndex> lfss_;                       // the same
};

}  // namespace pif::client
