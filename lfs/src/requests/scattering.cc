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
  PIF_ASSERT(component->is_open() && component->files->data, component->file.value);
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

Result<net::Packet> Scattering::read_pieces(const Request& request, const proto::ReadPieces& asked) {
  if (!asked.has_creating()) return reading_.read_pieces(request, asked);
  PIF_TRY_VALUE(const ComponentPtr component, to_read(request, asked.creating()));
  const auto files = component ? component->files : nullptr;
  const auto bytes_max = LfsContext::body_bytes_max(request);
  return context_.disk(
      [&] { return read_unsealed(request.packet.body.span(), files ? files->data.get() : nullptr, bytes_max); });
}

Status Scattering::sync_component(const Request& request, const proto::SyncComponent& asked) {
  PIF_TRY_VALUE(const ComponentPtr component, to_read(request, asked.shape()));
  if (!component) return {};
  const Status synced = context_.disk([files = component->files] { return component::sync(*files); });
  if (!synced) context_.components.set_failed(*component, synced.error());
  return synced;
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

Status Scattering::preallocate(const Request& request, const proto::Preallocate& asked) {
  if (asked.bytes() == 0) return {};
  PIF_TRY_VALUE(const ComponentPtr component, to_reserve(request, asked));
  const std::uint64_t sums = asked.bytes() / component->shape.chunk_bytes * component->shape.sum_bytes();
  const Status reserved = context_.disk([&asked, sums, files = component->files]() -> Status {
    PIF_TRY(files->data->reserve(asked.bytes()));
    return files->sums->reserve(sums);
  });
  if (reserved) component->reserved = std::max(component->reserved, asked.bytes());
  // Where the file system cannot, there is the room that was found, as long as nobody takes it.
  return !reserved && reserved.error().code == Code::kUnsupported ? Status() : reserved;
}

}  // namespace pif::lfs
