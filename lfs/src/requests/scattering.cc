#include "requests/scattering.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/component/extents.h"
#include "pif/pattern/runs.h"
#include "requests/piece_requests.h"

namespace pif::lfs {

Scattering::Scattering(LfsContext& context, Writing& writing, Reading& reading)
    : context_(context), writing_(writing), reading_(reading) {
  context.operations.bind<&Scattering::write_pieces>(*this);
  context.operations.bind<&Scattering::read_pieces>(*this);
  context.operations.bind<&Scattering::sync_component>(*this);
  context.operations.bind<&Scattering::preallocate>(*this);
}

Result<net::Packet> Scattering::write_pieces(const Request& request, const proto::WritePieces& asked) {
  const auto body = request.packet.body.span();
  if (asked.run_bytes() > body.size()) return fail(Code::kInvalid, "the runs are longer than the message");
  const auto runs = body.first(asked.run_bytes());
  const auto data = body.subspan(asked.run_bytes());
  PIF_TRY(check_runs(runs, {kFileBytesMax, data.size(), true, patterns::kWrittenPiecesMax}));
  PIF_TRY_VALUE(auto pieces, patterns::RunDecoder::make(runs, {}));
  const std::uint64_t begin = pieces.next()->offset;
  PIF_TRY(writing_.check_room(FileId(asked.shape().file()), pieces.end(), data.size()));
  PIF_TRY_VALUE(const auto component, writing_.open_component(request, asked.shape()));
  if (!component->shape.format.is_fixed())
    return fail(Code::kUnsupported,
                fmt::format("file {}: records of variable length are written in order", name_of(component->file)));
  net::Packet reply = Replies::reply(request);
  reply.envelope.mutable_done();
  const RequestKey key{request.who.session, request.envelope().id()};
  const auto known = written_.look(key);
  if (known == RequestDedup::Known::kDone) return reply;  // others may have written there since
  if (known == RequestDedup::Known::kForgotten)
    return fail(Code::kOutcomeUnknown,
                fmt::format("these pieces of file {} were sent too long ago to tell whether they "
                            "were written: they are not written now",
                            name_of(component->file)));
  if (component->writer) PIF_TRY(writing_.finish_writer(*component));
  PIF_TRY(context_.components.open_files(*component, component::OpenMode::kWrite));
  component->scattered = true;
  PIF_ASSERT(component->stage() == Stage::kFilling && component->files->data, component->file.value);
  PIF_TRY(write_runs(*component->files->data, runs, data, !component->given_out));
  component->writeback.passed(*component->files->data, {begin, pieces.end()});
  written_.add(key, context_.now());
  return reply;
}

Result<ComponentPtr> Scattering::to_read(const Request& request, const proto::ComponentShape& shape) {
  PIF_TRY(writing_.check_incarnation(shape));
  const auto found = context_.components.find(FileId(shape.file()));
  if (!found && found.error().code == Code::kNotFound) {
    if (!context_.components.was_removed(FileId(shape.file()))) return ComponentPtr();
    return fail(Code::kStaleFile, fmt::format("file {} was deleted or replaced", name_of(FileId(shape.file()))));
  }
  PIF_TRY_VALUE(const auto component, writing_.open_component(request, shape));
  if (component->writer) PIF_TRY(writing_.finish_writer(*component));
  PIF_TRY(context_.components.open_files(*component, component::OpenMode::kRead));
  return component;
}

void Scattering::read_pieces(const Request& request, const proto::ReadPieces& asked) {
  if (!asked.has_creating()) return reading_.read_pieces(request, asked);
  auto found = to_read(request, asked.creating());
  if (!found) return context_.replies.answer(request, fail(std::move(found.error())));
  struct Work {
    net::Buffer runs;
    std::shared_ptr<component::Files> files;
    Result<net::Packet> result = net::Packet();
  };
  auto work = std::make_shared<Work>();
  work->runs = net::Buffer::copy_of(request.packet.body.span());
  if (*found) work->files = (*found)->files;
  const auto token = context_.replies.defer(request);
  const auto bytes_max = LfsContext::body_bytes_max(request);
  context_.world.executor.submit(
      [work, bytes_max] {
        component::File* const data = work->files ? work->files->data.get() : nullptr;
        work->result = read_unsealed(work->runs.span(), data, bytes_max);
      },
      [this, work, token] { context_.replies.answer(token, std::move(work->result)); });
}

void Scattering::sync_component(const Request& request, const proto::SyncComponent& asked) {
  auto found = to_read(request, asked.shape());
  if (!found) return context_.replies.answer(request, fail(std::move(found.error())));
  if (*found) return answer_synced(request, *found);
  net::Packet reply = Replies::reply(request);
  reply.envelope.mutable_done();
  context_.replies.answer(request, Result<net::Packet>(std::move(reply)));
}

void Scattering::answer_synced(const Request& request, const ComponentPtr& component) {
  const auto token = context_.replies.defer(request);
  auto synced = std::make_shared<Status>();
  context_.world.executor.submit([synced, files = component->files] { *synced = component::sync(*files); },
                                 [this, synced, token, component] {
                                   if (!*synced) {
                                     context_.components.set_failed(*component, synced->error());
                                     return context_.replies.answer(token, *synced);
                                   }
                                   net::Packet reply;
                                   reply.envelope.mutable_done();
                                   context_.replies.answer(token, Result<net::Packet>(std::move(reply)));
                                 });
}

Result<ComponentPtr> Scattering::to_reserve(const Request& request, const proto::Preallocate& asked) {
  if (asked.bytes() > kFileBytesMax)
    return fail(Code::kTooLarge,
                fmt::format("room for {} bytes is asked for; a file has at most {}", asked.bytes(), kFileBytesMax));
  PIF_TRY_VALUE(const auto component, writing_.open_component(request, asked.shape()));
  if (!component->shape.format.is_fixed())
    return fail(Code::kUnsupported,
                fmt::format("file {}: records of variable length are written in order", name_of(component->file)));
  if (component->writer) PIF_TRY(writing_.finish_writer(*component));
  PIF_TRY(context_.components.open_files(*component, component::OpenMode::kWrite));
  component->scattered = true;
  const std::string data = component::stem(context_.config.root, component->file) + ".dat";
  PIF_TRY_VALUE(const auto taken, context_.world.storage.stored_bytes(data));
  PIF_TRY(context_.check_space(asked.bytes() - std::min(asked.bytes(), taken.value_or(0))));
  return component;
}

void Scattering::preallocate(const Request& request, const proto::Preallocate& asked) {
  if (asked.bytes() == 0) return context_.replies.answer(context_.replies.defer(request), Status());
  auto found = to_reserve(request, asked);
  if (!found) return context_.replies.answer(request, fail(std::move(found.error())));
  const ComponentPtr component = *found;
  const auto token = context_.replies.defer(request);
  auto reserved = std::make_shared<Status>();
  const std::uint64_t bytes = asked.bytes();
  const std::uint64_t sums = bytes / component->shape.chunk_bytes * component->shape.sum_bytes();
  context_.world.executor.submit(
      [reserved, files = component->files, bytes, sums] {
        *reserved = files->data->reserve(bytes);
        if (*reserved) *reserved = files->sums->reserve(sums);
      },
      [this, reserved, token, component, bytes] {
        if (*reserved) component->reserved = std::max(component->reserved, bytes);
        // Where the file system cannot, there is the room that was found, as long as nobody takes it.
        const bool is_done = *reserved || reserved->error().code == Code::kUnsupported;
        context_.replies.answer(token, is_done ? Status() : *reserved);
      });
}

}  // namespace pif::lfs
