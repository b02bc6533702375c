#include "rebuild/reconstructing.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "store/covered.h"

namespace pif::lfs {
namespace {

constexpr unsigned kTriesMax = 3;  // frames go while they are read: then there is a page

net::Buffer body_of(const Format& format, const component::PackedRows& rows) {
  const std::size_t head = format.is_fixed() ? 0 : rows.lengths.size() * sizeof(std::uint32_t);
  net::Buffer body(head + rows.bytes.size());
  if (head > 0) std::memcpy(body.data(), rows.lengths.data(), head);
  if (!rows.bytes.empty()) std::memcpy(body.data() + head, rows.bytes.data(), rows.bytes.size());
  return body;
}

Error too_large(std::uint64_t bytes, std::size_t bytes_max) {
  return {Code::kTooLarge,
          fmt::format("a record of {} bytes does not fit a packet of {} here: ask through ZeroMQ", bytes, bytes_max),
          {}};
}

}  // namespace

// What is asked for, and where it is looked for.
struct Reconstructing::Job {
  ComponentPtr component;
  Keeper keeper;
  std::size_t member = 0;  // whose rows are wanted
  Range parity_rows;       // in which it has them
  FileLength file_length;
  std::uint64_t epoch = 0;
  std::size_t bytes_max = 0;
  bool or_hashes = false;
  std::shared_ptr<component::ParityFiles> files = {};
  std::optional<component::FrameIndex> scanned = {};  // where the component's is not known

  const component::FrameIndex* frames() const {
    if (component->frames) return &*component->frames;
    return scanned ? &*scanned : nullptr;
  }
};

struct Reconstructing::Answer {
  component::PackedRows rows = {};         // one after another; or
  std::vector<std::uint64_t> hashes = {};  // of the wanted stretches of
  Range pages = {};

  // False: it is full.
  bool add(const Job& job, std::span<const std::byte> row) {
    const std::size_t head = job.keeper.format().is_fixed() ? 0 : (rows.lengths.size() + 1) * sizeof(std::uint32_t);
    if (!rows.lengths.empty() && head + rows.bytes.size() + row.size() > job.bytes_max) return false;
    rows.lengths.push_back(static_cast<std::uint32_t>(row.size()));
    rows.bytes.insert(rows.bytes.end(), row.begin(), row.end());
    return true;
  }
};

Reconstructing::Reconstructing(Keeping& keeping) : keeping_(keeping), context_(keeping.context) {
  context_.operations.bind<&Reconstructing::reconstruct>(*this);
  context_.operations.bind<&Reconstructing::attach_parity>(*this);
}

// ---- descriptors ---------------------------------------------------------------------------------------------------

Result<net::Packet> Reconstructing::attach_parity(const Request& request, const proto::AttachParity& asked) {
  const auto via = context_.world.messenger.identity(request.peer).via;
  if (via != net::Identity::Via::kUnix && via != net::Identity::Via::kSimulated)
    return fail(Code::kUnsupported, "descriptors travel over Unix sockets only: use Reconstruct here");
  PIF_TRY_VALUE(const auto component, context_.published(request, FileId(asked.file())));
  if (!keeps_parity(component->state.shape()))
    return fail(Code::kInvalid, fmt::format("file {} is one whose LFSs keep no parity", name_of(component->file)));
  // Ours can write: others get descriptors that cannot.
  PIF_TRY_VALUE(auto files, component::open_parity(context_.world.storage, context_.components.stem(component->file),
                                                   component::OpenMode::kRead));
  net::Packet reply = Replies::reply(request);
  *reply.envelope.mutable_attach_parity_reply()->mutable_state() = component->state;
  PIF_TRY_VALUE(reply.handles, component::share(files));
  return reply;
}

// ---- rows ----------------------------------------------------------------------------------------------------------

Result<net::Packet> Reconstructing::reconstruct(const Request& request, const proto::Reconstruct& asked) {
  PIF_TRY_VALUE(Job job, job_of(request, asked));
  const Result<Answer> answer = read(job);
  if (answer) return packet_of(job, *answer, Replies::reply(request));
  if (answer.error().code == Code::kCorrupt) spdlog::error("{}", answer.error().text);
  return fail(answer.error());
}

Result<Reconstructing::Job> Reconstructing::job_of(const Request& request, const proto::Reconstruct& asked) {
  PIF_TRY_VALUE(const auto component, context_.published(request, FileId(asked.file())));
  PIF_TRY(context_.check_present(component->state.shape()));
  PIF_TRY_VALUE(auto keeper, keeper_of(context_, component->state.shape()));
  const FileLength file_length = file_length_of(asked.file_length());
  PIF_TRY(check_file_length(keeper.format(), file_length));
  const auto& members = keeper.members.lfs;
  const auto found = std::find(members.begin(), members.end(), asked.index());
  if (found == members.end())
    return fail(Code::kInvalid, fmt::format("LFS {} of file {} has no parity of rows of its LFS {}", keeper.index,
                                            asked.file(), asked.index()));
  const auto member = static_cast<std::size_t>(found - members.begin());
  const Row end = asked.count() > ~asked.first() ? ~Row{0} : asked.first() + asked.count();
  const Range rows = cut({asked.first(), end}, keeper.rows_of(member, {0, file_length.records}));
  const Range parity_rows = keeper.parity_rows_of(member, rows);
  if (rows.empty() || parity_rows.empty())
    return fail(Code::kEndOfFile, fmt::format("none of the rows of LFS {} of file {} that are asked for has its parity "
                                              "here",
                                              asked.index(), asked.file()));
  const auto bytes_max = LfsContext::body_bytes_max(request);
  if (keeper.format().is_fixed() && keeper.format().record_length > bytes_max && bytes_max < kBulkBytes)
    return fail(too_large(keeper.format().record_length, bytes_max));
  Job job{component, std::move(keeper)};
  job.member = member;
  job.parity_rows = parity_rows;
  job.file_length = file_length;
  job.epoch = request.capability.epoch;
  job.bytes_max = bytes_max;
  job.or_hashes = asked.or_hashes();
  return job;
}

Result<Reconstructing::Answer> Reconstructing::read(Job& job) {
  for (unsigned tries = 1;; ++tries) {
    PIF_TRY(open(job));
    if (is_in_page(job, job.parity_rows.begin)) return read_pages(job);
    if (job.frames() == nullptr) {
      PIF_TRY(scan(job));
      PIF_TRY(open(job));
      if (is_in_page(job, job.parity_rows.begin)) return read_pages(job);
    }
    auto answer = read_frames(job);
    if (answer || answer.error().code != Code::kCorrupt || tries == kTriesMax) return answer;
    job.scanned.reset();
  }
}

Status Reconstructing::open(Job& job) {
  Component& c = *job.component;
  PIF_TRY(check_there(c));
  PIF_TRY(context_.components.open_parity(c, component::OpenMode::kWrite));
  job.files = c.parity;
  return {};
}

Status Reconstructing::scan(Job& job) {
  Component& c = *job.component;
  const std::uint64_t writes = c.frame_writes;
  PIF_TRY_VALUE(job.scanned, keeping_.works.run([&job, file = c.file, begin = c.state.pap_begin()] {
    return component::scan_frames(file, *job.files, begin);
  }));
  if (!c.frames && !c.lock.keeps_parity() && c.mode && c.frame_writes == writes) c.frames = job.scanned;
  return {};
}

// A page beyond those of published rows may have more of a last record than the file: made by an append that fills it
// up and is not published, perhaps never, when the page's other rows may go. The record's frame counts then, as long as
// there is one. False also where that is not known yet.
bool Reconstructing::is_in_page(const Job& job, Row parity_row) {
  const Component& c = *job.component;
  const std::uint64_t page = parity_row / job.keeper.shape.page_rows();
  if (!has_page(c.state, page)) return false;
  const Format& format = job.keeper.format();
  const RecordNumber record = job.keeper.record(job.member, parity_row);
  const auto bytes = record_bytes(format, job.file_length, record);
  if (page < c.state.pages() || !bytes || *bytes == format.record_length) return true;
  const component::FrameIndex* const index = job.frames();
  return index != nullptr && counted_frame(*index, c.state, format, job.file_length, record) == nullptr;
}

// ---- from frames ---------------------------------------------------------------------------------------------------

Result<std::vector<component::Frame>> Reconstructing::frames_of(const Job& job) {
  const Component& c = *job.component;
  PIF_ASSERT(job.frames() != nullptr && job.files != nullptr, c.file.value);
  std::vector<component::Frame> out;
  std::uint64_t bytes = 0;
  for (auto j = job.parity_rows.begin; j < job.parity_rows.end && (out.empty() || bytes < job.bytes_max); ++j) {
    if (is_in_page(job, j)) break;
    const RecordNumber record = job.keeper.record(job.member, j);
    const auto* const frame = counted_frame(*job.frames(), c.state, job.keeper.format(), job.file_length, record);
    if (frame != nullptr) {
      out.push_back(*frame);
      bytes += frame->bytes + sizeof(std::uint32_t);
      continue;
    }
    if (!out.empty()) break;
    return fail(Code::kCorrupt, fmt::format("file {}: record {} has its parity on LFS {}, which has neither a page nor "
                                            "a copy of it",
                                            name_of(c.file), record, job.keeper.index));
  }
  return out;
}

Result<Reconstructing::Answer> Reconstructing::read_frames(const Job& job) {
  PIF_TRY_VALUE(const auto frames, frames_of(job));
  return keeping_.works.run([&]() -> Result<Answer> {
    Answer answer;
    std::vector<std::byte> row;
    for (const auto& frame : frames) {
      PIF_TRY(component::read_frame(job.keeper.shape.file, *job.files, frame, row));
      if (!answer.add(job, row)) break;
    }
    return answer;
  });
}

// ---- from pages ----------------------------------------------------------------------------------------------------

Range Reconstructing::pages_of(const Job& job) const {
  const std::uint64_t page_rows = job.keeper.shape.page_rows();
  const std::uint64_t end = (job.parity_rows.end - 1) / page_rows + 1;
  const std::uint64_t row_bytes = row_bytes_of(job.keeper.format(), job.file_length);
  const std::uint64_t at_once = std::max<std::uint64_t>(job.bytes_max / (page_rows * row_bytes), 1);
  Range pages{job.parity_rows.begin / page_rows, job.parity_rows.begin / page_rows + 1};
  while (pages.end < end && pages.size() < at_once && is_in_page(job, pages.end * page_rows)) ++pages.end;
  return pages;
}

// Another member that a page needs, and that nobody asks.
std::optional<LfsIndex> Reconstructing::other_absent(const Job& job) const {
  const auto is_absent = absent_members(context_, job.keeper, job.component->state.shape());
  for (std::size_t i = 0; i < is_absent.size(); ++i)
    if (is_absent[i] && i != job.member) return job.keeper.members.lfs[i];
  return std::nullopt;
}

Result<Reconstructing::Answer> Reconstructing::read_pages(const Job& job) {
  const Range pages = pages_of(job);
  if (const auto other = other_absent(job))
    return read_without(job, pages, {Code::kUnavailable, "it is lost or being rebuilt", name_of_node(job, *other)});
  const std::uint64_t page_rows = job.keeper.shape.page_rows();
  const Range rows{pages.begin * page_rows, pages.end * page_rows};
  MemberOptions options;
  options.file_length = {0, kFileBytesMax};
  options.parity_rows = rows;
  options.epoch = job.epoch;
  const std::uint64_t row_bytes = row_bytes_of(job.keeper.format(), job.file_length);
  options.by_message = keeping_.are_few(rows.size() * job.keeper.size() * row_bytes);
  options.without = job.member;
  MemberRows others(keeping_.peers, context_.world.storage, job.keeper, options);
  Status fetched = others.open(job.component->state.shape());
  if (fetched && others.is_any_far()) fetched = others.fetch(rows);
  if (!fetched && access::is_lost(fetched.error().code)) return read_without(job, pages, fetched.error());
  PIF_TRY(fetched);
  return keeping_.works.run([&] { return rebuild(job, pages, others); });
}

Result<Reconstructing::Answer> Reconstructing::rebuild(const Job& job, Range pages, MemberRows& others) {
  const std::uint64_t page_rows = job.keeper.shape.page_rows();
  const auto sources = others.sources();
  PIF_ASSERT(sources.size() == job.keeper.size() && sources[job.member] == nullptr, sources.size(), job.member);
  Answer answer;
  for (auto page = pages.begin; page < pages.end; ++page) {
    PIF_TRY_VALUE(const auto stretch,
                  component::rebuild_stretch(job.keeper.shape, *job.files, page, job.member, sources));
    std::span<const std::byte> rest = stretch.bytes;
    for (std::uint64_t i = 0; i < page_rows; ++i) {
      const auto row = rest.first(stretch.lengths[i]);
      rest = rest.subspan(row.size());
      const std::uint64_t j = page * page_rows + i;
      if (j < job.parity_rows.begin || j >= job.parity_rows.end) continue;
      // Who asks may know of less of the last record than the page has.
      const auto bytes = record_bytes(job.keeper.format(), job.file_length, job.keeper.record(job.member, j));
      PIF_ASSERT(!bytes || *bytes <= row.size(), *bytes, row.size());
      if (!answer.add(job, bytes ? row.first(*bytes) : row)) return answer;
    }
  }
  return answer;
}

Result<Reconstructing::Answer> Reconstructing::read_without(const Job& job, Range pages, const Error& why) {
  if (!job.or_hashes) return fail(both_away(job, why));
  return keeping_.works.run([&] { return read_hashes(job, pages); });
}

Result<Reconstructing::Answer> Reconstructing::read_hashes(const Job& job, Range pages) {
  PIF_ASSERT(job.or_hashes && !pages.empty(), pages.begin, pages.end);
  Answer answer;
  answer.pages = pages;
  for (auto page = pages.begin; page < pages.end; ++page) {
    PIF_TRY_VALUE(const auto read, component::read_page(job.keeper.shape, *job.files, page));
    answer.hashes.push_back(read.vector[job.member].hash);
  }
  return answer;
}

std::string Reconstructing::name_of_node(const Job& job, LfsIndex lfs) const {
  const auto node = job.component->state.shape().layout().nodes(static_cast<int>(lfs));
  const proto::NodeInfo* const known = context_.peer_list.find(node);
  return known != nullptr ? known->name() : fmt::format("of node {}", node);
}

Error Reconstructing::both_away(const Job& job, const Error& why) const {
  const LfsIndex lost = job.keeper.members.lfs[job.member];
  return {
      Code::kUnavailable,
      fmt::format("file {}: record {}: LFS {} and {} are both away ({})", name_of(job.component->file),
                  job.keeper.record(job.member, job.parity_rows.begin), name_of_node(job, lost), why.node, why.text),
      {}};
}

// ---- the answer ----------------------------------------------------------------------------------------------------

Result<net::Packet> Reconstructing::packet_of(const Job& job, const Answer& answer, net::Packet reply) {
  proto::ReadReply& out = *reply.envelope.mutable_read_reply();
  const component::PackedRows& rows = answer.rows;
  if (!answer.hashes.empty()) {
    const std::uint64_t end = std::min(answer.pages.end * job.keeper.shape.page_rows(), job.parity_rows.end);
    PIF_ASSERT(end > job.parity_rows.begin && rows.lengths.empty(), end, job.parity_rows.begin);
    out.set_rows(end - job.parity_rows.begin);
    out.mutable_stretch_hashes()->Add(answer.hashes.begin(), answer.hashes.end());
    return reply;
  }
  PIF_ASSERT(!rows.lengths.empty(), job.component->file.value);
  const bool is_too_large = rows.bytes.size() + sizeof(std::uint32_t) > job.bytes_max && job.bytes_max < kBulkBytes;
  if (rows.lengths.size() == 1 && is_too_large) return fail(too_large(rows.bytes.size(), job.bytes_max));
  out.set_rows(rows.lengths.size());
  reply.body = body_of(job.keeper.format(), rows);
  return reply;
}

}  // namespace pif::lfs
