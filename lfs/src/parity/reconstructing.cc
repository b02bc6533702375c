#include "parity/reconstructing.h"

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

bool is_away(const Error& error) { return access::is_lost(error.code); }

}  // namespace

struct Reconstructing::Job {
  ReplyToken token = 0;
  ComponentPtr component;
  Keeper keeper;
  std::size_t member = 0;  // whose rows are wanted
  Range parity_rows;       // in which it has them
  FileLength file_length;
  std::uint64_t epoch = 0;
  std::size_t bytes_max = 0;
  bool or_hashes = false;
  unsigned tries = 0;
  std::optional<component::FrameIndex> scanned;
  std::shared_ptr<component::ParityFiles> files;
  std::unique_ptr<MemberRows> others;
  std::vector<component::Frame> frames;  // to be read; or
  Range pages;                           // to be taken
  component::PackedRows rows;            // what becomes the answer; or
  std::vector<std::uint64_t> hashes;     // of the wanted stretches of `pages`
  Status result;

  std::size_t size_with(std::uint64_t bytes) const {
    const std::size_t head = keeper.format().is_fixed() ? 0 : (rows.lengths.size() + 1) * sizeof(std::uint32_t);
    return head + rows.bytes.size() + bytes;
  }
  // False: the answer is full.
  bool add(std::span<const std::byte> row) {
    if (!rows.lengths.empty() && size_with(row.size()) > bytes_max) return false;
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

void Reconstructing::attach_parity(const Request& request, const proto::AttachParity&) {
  const ReplyToken token = context_.replies.defer(request);
  context_.replies.answer(token, descriptors(request));
}

Result<net::Packet> Reconstructing::descriptors(const Request& request) {
  const auto via = context_.world.messenger.identity(request.peer).via;
  if (via != net::Identity::Via::kUnix && via != net::Identity::Via::kSimulated)
    return fail(Code::kUnsupported, "descriptors travel over Unix sockets only: use Reconstruct here");
  PIF_TRY_VALUE(const auto component, context_.published(request, FileId(request.envelope().attach_parity().file())));
  if (!keeps_parity(component->state.shape()))
    return fail(Code::kInvalid, fmt::format("file {} is one whose LFSs keep no parity", name_of(component->file)));
  // Ours can write: others get descriptors that cannot.
  PIF_TRY_VALUE(auto files, component::open_parity(context_.world.storage, context_.components.stem(component->file),
                                                   component::OpenMode::kRead));
  net::Packet reply;
  *reply.envelope.mutable_attach_parity_reply()->mutable_state() = component->state;
  PIF_TRY_VALUE(reply.handles, component::share(files));
  return reply;
}

// ---- rows ----------------------------------------------------------------------------------------------------------

void Reconstructing::reconstruct(const Request& request, const proto::Reconstruct&) {
  auto job = prepare(request);
  if (!job) return context_.replies.answer(request, fail(std::move(job.error())));
  (*job)->token = context_.replies.defer(request);
  begin(*job);
}

Result<Reconstructing::JobPtr> Reconstructing::prepare(const Request& request) {
  const auto& asked = request.envelope().reconstruct();
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
    return fail(Code::kTooLarge,
                fmt::format("a record of {} bytes does not fit a packet of {} here: ask through ZeroMQ",
                            keeper.format().record_length, bytes_max));
  auto job = std::make_shared<Job>(Job{0, component, std::move(keeper)});
  job->member = member;
  job->parity_rows = parity_rows;
  job->file_length = file_length;
  job->epoch = request.capability.epoch;
  job->bytes_max = bytes_max;
  job->or_hashes = asked.or_hashes();
  return job;
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
  if (!c.frames && !job.scanned) return false;
  return counted_frame(c.frames ? *c.frames : *job.scanned, c.state, format, job.file_length, record) == nullptr;
}

// All rows of one answer come from frames, or all from pages.
void Reconstructing::begin(const JobPtr& job) {
  Component& c = *job->component;
  job->result = {};
  if (c.is_removed()) job->result = fail(Code::kStaleFile, "the file was deleted meanwhile");
  if (c.failure) job->result = fail(*c.failure);
  if (job->result) job->result = context_.components.open_parity(c, component::OpenMode::kWrite);
  if (!job->result) return answer(job);
  job->files = c.parity;
  ++job->tries;
  if (is_in_page(*job, job->parity_rows.begin)) {
    take_pages(*job);
    return read_pages(job);
  }
  if (!c.frames && !job->scanned) return scan(job);
  job->result = take_frames(*job);
  if (!job->result) return answer(job);
  read_frames(job);
}

void Reconstructing::scan(const JobPtr& job) {
  auto found = std::make_shared<Result<component::FrameIndex>>(fail(Code::kInternal, "not scanned"));
  keeping_.works.submit(
      [found, files = job->files, file = job->component->file, begin = job->component->state.pap_begin()] {
        *found = component::scan_frames(file, *files, begin);
      },
      [this, job, found] {
        if (!*found) {
          job->result = fail(std::move(found->error()));
          return answer(job);
        }
        job->scanned = std::move(**found);
        Component& c = *job->component;
        if (!c.frames && !c.is_keeping && c.mode) c.frames = job->scanned;
        begin(job);
      });
}

Status Reconstructing::take_frames(Job& job) {
  const Component& c = *job.component;
  const component::FrameIndex& index = c.frames ? *c.frames : *job.scanned;
  std::uint64_t bytes = 0;
  for (auto j = job.parity_rows.begin; j < job.parity_rows.end && (job.frames.empty() || bytes < job.bytes_max); ++j) {
    if (is_in_page(job, j)) break;
    const RecordNumber record = job.keeper.record(job.member, j);
    const component::Frame* const frame = counted_frame(index, c.state, job.keeper.format(), job.file_length, record);
    if (frame != nullptr) {
      job.frames.push_back(*frame);
      bytes += frame->bytes + sizeof(std::uint32_t);
      continue;
    }
    if (!job.frames.empty()) break;
    return fail(Code::kCorrupt, fmt::format("file {}: record {} has its parity on LFS {}, which has neither a page nor "
                                            "a copy of it",
                                            name_of(c.file), record, job.keeper.index));
  }
  return {};
}

void Reconstructing::read_frames(const JobPtr& job) {
  keeping_.works.submit(
      [job] {
        std::vector<std::byte> row;
        for (const auto& frame : job->frames) {
          job->result = component::read_frame(job->keeper.shape.file, *job->files, frame, row);
          if (!job->result || !job->add(row)) break;
        }
      },
      [this, job] {
        const bool again = !job->result && job->result.error().code == Code::kCorrupt && job->tries < kTriesMax;
        if (!again) return answer(job);
        job->frames.clear();
        job->rows = {};
        job->scanned.reset();
        begin(job);
      });
}

void Reconstructing::take_pages(Job& job) {
  const std::uint64_t page_rows = job.keeper.shape.page_rows();
  const std::uint64_t first = job.parity_rows.begin / page_rows;
  const std::uint64_t end = (job.parity_rows.end - 1) / page_rows + 1;
  const std::uint64_t row_bytes = row_bytes_of(job.keeper.format(), job.file_length);
  const std::uint64_t at_once = std::max<std::uint64_t>(job.bytes_max / (page_rows * row_bytes), 1);
  job.pages = {first, first + 1};
  while (job.pages.end < end && job.pages.size() < at_once && is_in_page(job, job.pages.end * page_rows))
    ++job.pages.end;
}

// Another member that a page needs, and that nobody asks.
std::optional<LfsIndex> Reconstructing::other_absent(const Job& job) const {
  const auto is_absent = absent_members(context_, job.keeper, job.component->state.shape());
  for (std::size_t i = 0; i < is_absent.size(); ++i)
    if (is_absent[i] && i != job.member) return job.keeper.members.lfs[i];
  return std::nullopt;
}

void Reconstructing::read_pages(const JobPtr& job) {
  if (const auto other = other_absent(*job))
    return cannot_rebuild(job, {Code::kUnavailable, "it is lost or being rebuilt", name_of_node(*job, *other)});
  const std::uint64_t page_rows = job->keeper.shape.page_rows();
  const Range rows{job->pages.begin * page_rows, job->pages.end * page_rows};
  MemberOptions options;
  options.file_length = {0, kFileBytesMax};
  options.parity_rows = rows;
  options.epoch = job->epoch;
  const std::uint64_t row_bytes = row_bytes_of(job->keeper.format(), job->file_length);
  options.by_message = keeping_.are_few(rows.size() * job->keeper.size() * row_bytes);
  options.without = job->member;
  job->others = std::make_unique<MemberRows>(keeping_.peers, context_.world.storage, job->keeper, options);
  const auto fetched = [this, job](const Status& status) {
    if (status) return rebuild(job);
    if (is_away(status.error())) return cannot_rebuild(job, status.error());
    job->result = status;
    answer(job);
  };
  context_.fibers.start([job, rows, fetched] {
    Status status = job->others->open(job->component->state.shape());
    if (status && job->others->is_any_far()) status = job->others->fetch(rows);
    fetched(status);
  });
}

void Reconstructing::rebuild(const JobPtr& job) {
  keeping_.works.submit(
      [job] {
        const std::uint64_t page_rows = job->keeper.shape.page_rows();
        const auto sources = job->others->sources();
        bool has_room = true;
        for (auto page = job->pages.begin; page < job->pages.end && has_room; ++page) {
          const auto stretch = component::rebuild_stretch(job->keeper.shape, *job->files, page, job->member, sources);
          if (!stretch) {
            job->result = fail(stretch.error());
            return;
          }
          std::span<const std::byte> rest = stretch->bytes;
          for (std::uint64_t i = 0; i < page_rows && has_room; ++i) {
            const auto row = rest.first(stretch->lengths[i]);
            rest = rest.subspan(row.size());
            const std::uint64_t j = page * page_rows + i;
            if (j < job->parity_rows.begin || j >= job->parity_rows.end) continue;
            // Who asks may know of less of the last record than the page has.
            const auto bytes = record_bytes(job->keeper.format(), job->file_length, job->keeper.record(job->member, j));
            PIF_ASSERT(!bytes || *bytes <= row.size(), *bytes, row.size());
            has_room = job->add(bytes ? row.first(*bytes) : row);
          }
        }
      },
      [this, job] { answer(job); });
}

// why: of another member.
void Reconstructing::cannot_rebuild(const JobPtr& job, Error why) {
  if (job->or_hashes) return read_hashes(job);
  job->result = fail(both_away(*job, why));
  answer(job);
}

void Reconstructing::read_hashes(const JobPtr& job) {
  keeping_.works.submit(
      [job] {
        for (auto page = job->pages.begin; page < job->pages.end; ++page) {
          const auto read = component::read_page(job->keeper.shape, *job->files, page);
          if (!read) job->result = fail(read.error());
          if (!read) return;
          job->hashes.push_back(read->vector[job->member].hash);
        }
      },
      [this, job] { answer(job); });
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

void Reconstructing::answer(const JobPtr& job) {
  job->others.reset();
  if (!job->result) {
    if (job->result.error().code == Code::kCorrupt) spdlog::error("{}", job->result.error().text);
    return context_.replies.answer(job->token, job->result);
  }
  net::Packet reply;
  if (!job->hashes.empty()) {
    const std::uint64_t end = std::min(job->pages.end * job->keeper.shape.page_rows(), job->parity_rows.end);
    PIF_ASSERT(end > job->parity_rows.begin && job->rows.lengths.empty(), end, job->parity_rows.begin);
    auto& out = *reply.envelope.mutable_read_reply();
    out.set_rows(end - job->parity_rows.begin);
    out.mutable_stretch_hashes()->Add(job->hashes.begin(), job->hashes.end());
    return context_.replies.answer(job->token, Result<net::Packet>(std::move(reply)));
  }
  PIF_ASSERT(!job->rows.lengths.empty(), job->component->file.value);
  const std::size_t bytes = job->rows.bytes.size() + sizeof(std::uint32_t);
  if (job->rows.lengths.size() == 1 && bytes > job->bytes_max && job->bytes_max < kBulkBytes)
    return context_.replies.answer(
        job->token,
        fail(Code::kTooLarge, fmt::format("a record of {} bytes does not fit a packet of {} here: ask through ZeroMQ",
                                          bytes - 4, job->bytes_max)));
  reply.envelope.mutable_read_reply()->set_rows(job->rows.lengths.size());
  reply.body = body_of(job->keeper.format(), job->rows);
  context_.replies.answer(job->token, Result<net::Packet>(std::move(reply)));
}

}  // namespace pif::lfs
