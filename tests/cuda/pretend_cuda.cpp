// A CUDA device that computes on the CPU: the device type is CUDA for everything in PyTorch, the memory is the host's.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>
#include <torch/library.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>

using at::Tensor;
namespace {

constexpr auto CUDA = c10::DeviceType::CUDA;
int DEVICES = 1;
thread_local int current = 0;

// ---- events: what a real device would wait for ------------------------------------------------------------------
extern "C" {
typedef void (*Callback)(const char* kind, const char* what, int64_t bytes);
}
std::atomic<Callback> callback{nullptr};
thread_local int quiet = 0;
struct Quiet { Quiet() { ++quiet; } ~Quiet() { --quiet; } };

// Copies to the host that were asked for without waiting: done at the next synchronisation, as late as a device may.
struct Late { Tensor to; Tensor from; };
std::mutex late_mutex;
std::vector<Late> late;
void settle() {
  std::vector<Late> now;
  { std::lock_guard<std::mutex> lock(late_mutex); now.swap(late); }
  for (auto& one : now) { Quiet q; one.to.copy_(one.from); }
}
void event(const char* kind, const std::string& what, int64_t bytes = 0) {
  if (kind[0] == 's') settle();  // "sync..."
  if (quiet) return;
  if (auto call = callback.load()) call(kind, what.c_str(), bytes);
}

// ---- memory -----------------------------------------------------------------------------------------------------
struct Stats { std::atomic<int64_t> now{0}, peak{0}, limit{0}, allocations{0}; };
Stats stats[16];
void grow(int index, int64_t bytes) {
  auto& one = stats[index];
  int64_t limit = one.limit.load();
  if (limit && one.now.load() + bytes > limit)
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory (pretended). Tried to allocate ", bytes, " bytes. GPU ", index,
        " has ", limit, " of which ", one.now.load(), " are allocated.");
  int64_t now = one.now += bytes;
  one.allocations++;
  int64_t peak = one.peak.load();
  while (now > peak && !one.peak.compare_exchange_weak(peak, now)) {}
}
struct Block { void* raw; int64_t bytes; int index; c10::Storage host; };
std::mutex block_mutex;
std::unordered_map<const void*, int> blocks;  // address -> device, for getDeviceFromPtr
void free_block(void* context) {
  auto* block = static_cast<Block*>(context);
  stats[block->index].now -= block->bytes;
  if (block->raw) std::free(block->raw);
  delete block;
}
struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    int index = current;
    auto* block = new Block{nullptr, static_cast<int64_t>(bytes), index, {}};
    if (bytes) {
      try { grow(index, bytes); } catch (...) { delete block; throw; }
      block->raw = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
      // Fresh device memory holds what was there before: not-a-numbers show reads of it.
      memset(block->raw, 0xFF, bytes);
    }
    return {block->raw, block, &free_block, c10::Device(CUDA, index)};
  }
  void copy_data(void* to, const void* from, size_t count) const override { memcpy(to, from, count); }
};
DeviceAllocator device_allocator;

std::mutex pinned_mutex;
std::map<const void*, size_t> pinned;
void free_pinned(void* at) {
  { std::lock_guard<std::mutex> lock(pinned_mutex); pinned.erase(at); }
  std::free(at);
}
struct PinnedAllocator final : at::HostAllocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* raw = std::aligned_alloc(64, (bytes + 64) / 64 * 64);
    std::lock_guard<std::mutex> lock(pinned_mutex);
    pinned[raw] = bytes;
    return {raw, raw, &free_pinned, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, size_t count) const override { memcpy(to, from, count); }
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};
PinnedAllocator pinned_allocator;
bool is_pinned(const void* at) {
  std::lock_guard<std::mutex> lock(pinned_mutex);
  auto next = pinned.upper_bound(at);
  if (next == pinned.begin()) return false;
  --next;
  return static_cast<const char*>(at) <= static_cast<const char*>(next->first) + next->second;
}

// ---- devices and streams ----------------------------------------------------------------------------------------
int checked(int index) {
  TORCH_CHECK(index < DEVICES, "CUDA error: invalid device ordinal (pretended: ", index, " of ", DEVICES, ")");
  return index;
}
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return CUDA; }
  c10::Device exchangeDevice(c10::Device to) const override {
    auto before = getDevice();
    setDevice(to);
    return before;
  }
  c10::Device getDevice() const override { return {CUDA, static_cast<c10::DeviceIndex>(current)}; }
  void setDevice(c10::Device to) const override { if (to.has_index()) current = checked(to.index()); }
  void uncheckedSetDevice(c10::Device to) const noexcept override { if (to.has_index()) current = to.index(); }
  c10::Stream getStream(c10::Device on) const override { return c10::Stream(c10::Stream::DEFAULT, on.has_index() ? on : getDevice()); }
  c10::Stream getDefaultStream(c10::Device on) const override { return getStream(on); }
  c10::Stream getStreamFromGlobalPool(c10::Device on, bool) const override { return getStream(on); }
  c10::Stream getNewStream(c10::Device on, int) const override { return getStream(on); }
  c10::Stream exchangeStream(c10::Stream to) const override { return getStream(to.device()); }
  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override { if (!*event) *event = reinterpret_cast<void*>(1); }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  c10::DeviceIndex deviceCount() const noexcept override { return DEVICES; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { event("sync", "stream.synchronize"); }
  void synchronizeEvent(void*) const override { event("sync", "event.synchronize"); }
  void synchronizeDevice(const c10::DeviceIndex) const override { event("sync", "device.synchronize"); }
  double elapsedTime(void*, void*, const c10::DeviceIndex) const override { return 1.0; }
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard);

// ---- generators -------------------------------------------------------------------------------------------------
struct Generator final : c10::GeneratorImpl {
  at::Generator inner;
  explicit Generator(int index)
      : c10::GeneratorImpl(c10::Device(CUDA, index), c10::DispatchKeySet(c10::DispatchKey::CUDA)), inner(at::detail::createCPUGenerator(67280421310721)) {}
  void set_current_seed(uint64_t seed) override { inner.set_current_seed(seed); }
  void set_offset(uint64_t) override {}
  uint64_t get_offset() const override { return 0; }
  uint64_t current_seed() const override { return inner.current_seed(); }
  uint64_t seed() override { return inner.seed(); }
  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK(state.device().is_cpu(), "RNG state must be a torch.ByteTensor");
    inner.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return inner.unsafeGetGeneratorImpl()->get_state(); }
  Generator* clone_impl() const override {
    auto* copy = new Generator(device_.index());
    copy->inner = inner.clone();
    return copy;
  }
};
at::Generator& default_generator(int index) {
  static std::vector<at::Generator> all = [] {
    std::vector<at::Generator> made;
    for (int i = 0; i < 16; ++i) made.push_back(at::make_generator<Generator>(i));
    return made;
  }();
  return all.at(index < 0 ? current : index);
}

}  // namespace
namespace at {
struct PretendHooks final : CUDAHooksInterface {
  explicit PretendHooks(CUDAHooksArgs) {}
  void init() const override {}
  const at::Generator& getDefaultGenerator(DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(DeviceIndex index) const override { return at::make_generator<::Generator>(index < 0 ? current : index); }
  Device getDeviceFromPtr(void*) const override { return Device(DeviceType::CUDA, static_cast<DeviceIndex>(current)); }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return DEVICES > 0; }
  bool hasCUDA() const override { return DEVICES > 0; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex current_device() const override { return current; }
  DeviceIndex deviceCount() const override { return DEVICES; }
  void setCurrentDevice(DeviceIndex index) const override { current = checked(index); }
  DeviceIndex getCurrentDevice() const override { return current; }
  DeviceIndex exchangeDevice(DeviceIndex index) const override { int before = current; current = checked(index); return before; }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override { return index < 0 ? current : exchangeDevice(index); }
  Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator; }
  Allocator* getCUDADeviceAllocator() const override { return &device_allocator; }
  int getNumGPUs() const override { return DEVICES; }
  void deviceSynchronize(DeviceIndex) const override { event("sync", "device.synchronize"); }
  std::string showConfig() const override { return "pretended"; }
};
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, PretendHooks)
}  // namespace at
namespace c10d {
struct PretendTimer : Timer {  // Of DistributedDataParallel.
  explicit PretendTimer(c10::Device) {}
  std::optional<int64_t> measureDifference(Event start, Event end) override {
    auto from = getTimestamp(start), to = getTimestamp(end);
    return from && to && *from <= *to ? std::optional(*to - *from) : std::nullopt;
  }
};
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kCUDA, PretendTimer)
}  // namespace c10d
namespace {

// ---- tensors ----------------------------------------------------------------------------------------------------
Tensor host_alias(const Tensor& x) {
  const auto& storage = x.storage();
  c10::Storage view(c10::Storage::use_byte_size_t(), storage.nbytes(),
                    c10::DataPtr(storage.mutable_data(), c10::Device(c10::DeviceType::CPU)), nullptr, false);
  auto made = at::detail::make_tensor<c10::TensorImpl>(std::move(view), c10::DispatchKeySet(c10::DispatchKey::CPU), x.dtype());
  made.unsafeGetTensorImpl()->set_storage_offset(x.storage_offset());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(x.sizes(), x.strides());
  if (x.is_conj()) made._set_conj(true);
  if (x.is_neg()) made._set_neg(true);
  if (x.unsafeGetTensorImpl()->is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
  return made;
}
Tensor shaped(c10::Storage storage, const Tensor& like) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CUDA), like.dtype());
  made.unsafeGetTensorImpl()->set_storage_offset(like.storage_offset());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides());
  if (like.is_conj()) made._set_conj(true);
  if (like.is_neg()) made._set_neg(true);
  return made;
}
Tensor to_device(const Tensor& host, int index) {  // takes the memory over
  if (!host.defined()) return host;
  auto storage = host.storage();
  auto* block = new Block{nullptr, static_cast<int64_t>(storage.nbytes()), index, storage};
  try { grow(index, storage.nbytes()); } catch (...) { delete block; throw; }
  c10::Storage mine(c10::Storage::use_byte_size_t(), storage.nbytes(),
                    c10::DataPtr(storage.mutable_data(), block, &free_block, c10::Device(CUDA, index)), &device_allocator, true);
  return shaped(std::move(mine), host);
}
bool ours(const Tensor& x) { return x.defined() && x.device().type() == CUDA; }

const std::unordered_set<std::string> WAITS = {"aten::nonzero", "aten::nonzero.out", "aten::masked_select", "aten::masked_select.out", "aten::_unique2",
    "aten::unique_dim", "aten::unique_consecutive", "aten::equal", "aten::repeat_interleave.Tensor", "aten::bincount", "aten::is_nonzero",
    "aten::_linalg_solve_ex.result", "aten::histc", "aten::_unique"};
const std::unordered_set<std::string> HOST_INDICES = {"aten::index.Tensor", "aten::index.Tensor_out", "aten::index_put_", "aten::_index_put_impl_",
    "aten::index_put", "aten::index_put.out", "aten::_unsafe_index.Tensor"};
const std::unordered_set<std::string> HOST_ARGUMENT = {"aten::_pack_padded_sequence", "aten::tensor_split.tensor_indices_or_sections", "aten::_foreach_mul_.Tensor",
    "aten::_foreach_mul.Tensor"};

std::atomic<int64_t> launches{0};
void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  ++launches;
  const auto& schema = op.schema();
  const auto& arguments = schema.arguments();
  const auto name = c10::toString(schema.operator_name());
  const size_t n = arguments.size(), base = stack->size() - n;
  int index = -1;
  auto look = [&](const Tensor& x) { if (ours(x) && index < 0) index = x.device().index(); };
  for (size_t i = 0; i < n; ++i) {
    auto& value = (*stack)[base + i];
    if (value.isTensor()) look(value.toTensor());
    else if (value.isTensorList()) for (const auto& x : value.toTensorVector()) look(x);
    else if (value.isOptionalTensorList()) for (const std::optional<Tensor>& x : value.toOptionalTensorList()) { if (x) look(*x); }
    else if (value.isList() && value.toListRef().size() && value.toListRef()[0].isTensor()) for (const auto& x : value.toListRef()) { if (x.isTensor()) look(x.toTensor()); }
    else if (value.isDevice() && value.toDevice().type() == CUDA && index < 0) index = value.toDevice().has_index() ? value.toDevice().index() : current;
  }
  if (index < 0) index = current;
  const c10::Device device(CUDA, index);
  c10::DeviceGuard on(device);
  if (WAITS.count(name)) {
    bool waits = true;
    if (name == "aten::repeat_interleave.Tensor") waits = (*stack)[base + n - 1].isNone();
    if (waits) event("sync", name);
  }
  struct Given { Tensor mine, host; bool fresh; };
  std::vector<std::vector<Given>> given(n);
  auto check = [&](const Tensor& x, size_t i) {
    if (!x.defined() || x.device() == device) return;
    if (x.device().is_cpu() && (x.dim() == 0 || HOST_ARGUMENT.count(name))) return;
    if (x.device().is_meta()) return;
    TORCH_CHECK(false, "Expected all tensors to be on the same device, but got ", arguments[i].name(), " is on ", x.device(),
        ", different from other tensors on ", device, " (when checking argument in method wrapper_CUDA_", name, ")");
  };
  auto take = [&](const Tensor& x, size_t i) -> Tensor {
    const bool indices = HOST_INDICES.count(name) && arguments[i].name() == "indices";
    if (indices && x.defined() && x.device().is_cpu()) {
      // The shape function of index.Tensor has copied them already.
      if (name != "aten::index.Tensor_out") event("sync", name + " by indices of the host", x.nbytes());
      return x;
    }
    check(x, i);
    if (!ours(x)) return x;
    const auto* alias = arguments[i].alias_info();
    const bool out = arguments[i].is_out() && alias && alias->isWrite() && x.numel() == 0;
    Tensor host = out ? at::empty({0}, x.options().device(at::kCPU).dtype(x.scalar_type())) : host_alias(x);
    given[i].push_back({x, host, out});
    return host;
  };
  {
    Quiet q;
    for (size_t i = 0; i < n; ++i) {
      auto& value = (*stack)[base + i];
      if (value.isTensor()) value = take(value.toTensor(), i);
      else if (value.isTensorList()) {
        std::vector<Tensor> all;
        for (const auto& x : value.toTensorVector()) all.push_back(take(x, i));
        value = c10::IValue(all);
      } else if (value.isOptionalTensorList()) {
        c10::List<std::optional<Tensor>> all;
        --quiet;
        for (const std::optional<Tensor>& x : value.toOptionalTensorList()) all.push_back(x && x->defined() ? std::optional<Tensor>(take(*x, i)) : std::nullopt);
        ++quiet;
        value = c10::IValue(all);
      } else if (value.isDevice() && value.toDevice().type() == CUDA) value = c10::IValue(c10::Device(c10::DeviceType::CPU));
      else if (value.isGenerator() || (value.isNone() && arguments[i].name() == "generator")) {
        at::Generator wanted = value.isNone() ? default_generator(index) : value.toGenerator();
        TORCH_CHECK(wanted.device().type() == CUDA, "Expected a 'cuda' device type for generator but found '", wanted.device().type(), "'");
        TORCH_CHECK(wanted.device().index() == index, "Expected a generator of ", device, " but found ", wanted.device());
        value = c10::IValue(static_cast<::Generator*>(wanted.unsafeGetGeneratorImpl())->inner);
      }
    }
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  }
  // Memory that an operation has made anew for `out`.
  for (auto& all : given)
    for (auto& one : all)
      if (one.fresh && (one.host.numel() || one.host.sizes() != one.mine.sizes())) {
        Quiet q;
        one.mine.resize_(one.host.sizes());
        if (one.host.numel()) {
          one.mine.unsafeGetTensorImpl()->set_sizes_and_strides(one.host.sizes(), one.host.strides());
          host_alias(one.mine).copy_(one.host);
        }
      } else if (!one.fresh && one.host.sizes() != one.mine.sizes()) {
        one.mine.unsafeGetTensorImpl()->set_sizes_and_strides(one.host.sizes(), one.host.strides());
      }
  const auto& returns = schema.returns();
  const size_t first = stack->size() - returns.size();
  auto back = [&](const Tensor& x) -> Tensor {
    if (!x.defined() || x.device().type() == CUDA) return x;
    for (auto& all : given)
      for (auto& one : all) {
        if (one.host.unsafeGetTensorImpl() == x.unsafeGetTensorImpl()) return one.mine;
        if (!one.fresh && one.host.storage().unsafeGetStorageImpl() == x.storage().unsafeGetStorageImpl()) return shaped(one.mine.storage(), x);
      }
    return to_device(x, index);
  };
  for (size_t r = 0; r < returns.size(); ++r) {
    auto& value = (*stack)[first + r];
    if (value.isTensor()) value = back(value.toTensor());
    else if (value.isTensorList()) {
      std::vector<Tensor> all;
      for (const auto& x : value.toTensorVector()) all.push_back(back(x));
      value = c10::IValue(all);
    }
  }
}

c10::Device wanted(std::optional<c10::Device> device) {
  int index = device && device->has_index() ? device->index() : current;
  return {CUDA, static_cast<c10::DeviceIndex>(checked(index))};
}
Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>, std::optional<c10::Device> device, std::optional<bool> pin,
             std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!pin.value_or(false), "Only dense CPU tensors can be pinned");
  c10::DeviceGuard on(wanted(device));
  return at::detail::empty_generic(size, &device_allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA), c10::dtype_or_default(dtype), format);
}
Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype, std::optional<at::Layout>, std::optional<c10::Device> device,
                     std::optional<bool> pin) {
  TORCH_CHECK(!pin.value_or(false), "Only dense CPU tensors can be pinned");
  c10::DeviceGuard on(wanted(device));
  return at::detail::empty_strided_generic(size, stride, &device_allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA), c10::dtype_or_default(dtype));
}
Tensor& copy_(Tensor& self, const Tensor& source, bool non_blocking) {
  ++launches;
  if (self._is_zerotensor() || source.device().is_meta()) return self;
  const bool from = ours(source), to = ours(self);
  if (from && !to) {
    if (non_blocking && self.is_cpu()) {
      event("later", is_pinned(self.const_data_ptr()) ? "device to pinned host, not waited for" : "device to pageable host, not waited for", source.nbytes());
      Quiet q;
      Tensor kept = host_alias(source).clone();
      if (c10::isFloatingType(self.scalar_type())) self.fill_(std::numeric_limits<double>::quiet_NaN());
      else self.fill_(self.scalar_type() == at::kBool ? 1 : 85);
      std::lock_guard<std::mutex> lock(late_mutex);
      late.push_back({self, kept});
      return self;
    }
    event("sync", "copy device to host", source.nbytes());
  } else if (to && !from) {
    if (!non_blocking) event("sync", "copy host to device", source.nbytes());
    else event("push", is_pinned(source.const_data_ptr()) ? "pinned host to device, not waited for" : "pageable host to device, not waited for", source.nbytes());
  } else if (from && to && self.device() != source.device()) event("peer", "copy device to device", source.nbytes());
  Quiet q;
  Tensor host = to ? host_alias(self) : self;
  host.copy_(from ? host_alias(source) : source);
  return self;
}
Tensor copy_from(const Tensor& self, const Tensor& to, bool non_blocking) { Tensor d = to; copy_(d, self, non_blocking); return d; }
Tensor copy_from_and_resize(const Tensor& self, const Tensor& to) { to.resize_(self.sizes()); Tensor d = to; copy_(d, self, false); return d; }
at::Scalar scalar(const Tensor& self) {
  event("sync", "item", self.nbytes());
  return at::_local_scalar_dense(host_alias(self));
}
Tensor as_strided(const Tensor& self, at::IntArrayRef size, at::IntArrayRef stride, std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}
const Tensor& resize_(const Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  c10::DeviceGuard on(self.device());
  return at::native::resize_(self, size, format);
}
Tensor& set_nothing(Tensor& self) {
  c10::DeviceGuard on(self.device());
  Tensor fresh = at::empty({0}, self.options());
  return self.set_(fresh.storage(), 0, {0}, {});
}
int64_t sdp_choice(const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, double, bool, std::optional<double>, bool) { return 0; }
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask, double p, bool causal, std::optional<double> scale, bool gqa) {
  for (const auto* x : {&k, &v}) TORCH_CHECK(x->device() == q.device(), "Expected query, key, and value to have the same device type");
  TORCH_CHECK(!mask || !mask->defined() || mask->device() == q.device(), "Expected attn_mask and query to have the same device");
  std::optional<Tensor> added = mask;  // The plain function adds what it is given.
  if (mask && mask->defined() && mask->scalar_type() == at::kBool)
    added = at::zeros(mask->sizes(), q.options()).masked_fill_(mask->logical_not(), -std::numeric_limits<double>::infinity());
  return std::get<0>(at::_scaled_dot_product_attention_math(q, k, v, added, p, causal, std::nullopt, scale, gqa));
}
std::tuple<Tensor, Tensor> rms_norm(const Tensor& x, at::IntArrayRef shape, const std::optional<Tensor>& weight, std::optional<double> eps) {
  ++launches;  // The CPU composes it of several operations; a GPU has a kernel.
  Quiet q;
  const bool weighed = weight && weight->defined();
  if (weighed) TORCH_CHECK(weight->device() == x.device(), "Expected weight to be on the device of its input");
  auto [found, rstd] = at::_fused_rms_norm(host_alias(x), shape, weighed ? std::optional<Tensor>(host_alias(*weight)) : std::nullopt, eps);
  return {to_device(found, x.device().index()), to_device(rstd, x.device().index())};
}
void record_stream(Tensor&, at::Stream) {}

TORCH_LIBRARY_IMPL(_, CUDA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }
TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("copy_", copy_);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", scalar);
  m.impl("as_strided", as_strided);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("unfold", at::native::unfold);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("resize_", resize_);
  m.impl("set_", set_nothing);
  m.impl("set_.source_Storage", at::native::set_);
  m.impl("set_.source_Storage_storage_offset", at::native::set_storage_cpu_);
  m.impl("set_.source_Tensor", at::native::set_tensor_);
  m.impl("is_set_to", at::native::is_set_to);
  m.impl("_fused_sdp_choice", sdp_choice);
  m.impl("scaled_dot_product_attention", attention);
  m.impl("_fused_rms_norm", rms_norm);
  m.impl("record_stream", record_stream);
}
TORCH_LIBRARY_IMPL(aten, AutogradCUDA, m) { m.impl("scaled_dot_product_attention", attention); }

at::Generator generator_of(int64_t index) { return default_generator(index); }
TORCH_LIBRARY(pretend, m) { m.def("generator(int index) -> Generator?", &generator_of); }

struct Start {
  Start() {
    if (const char* devices = std::getenv("PRETEND_CUDA_DEVICES")) DEVICES = std::atoi(devices);
    c10::SetAllocator(CUDA, &device_allocator, 100);
    at::setHostAllocator(CUDA, &pinned_allocator, 100);
  }
} start;
}  // namespace

extern "C" {
int pretend_count() { return DEVICES; }
void pretend_set_count(int n) { DEVICES = n; }
int pretend_current() { return current; }
void pretend_set_device(int index) { current = index; }
void pretend_quiet(int by) { quiet += by; }  // of this thread: nothing is recorded
void pretend_settle(const char* what) { event("sync", what); }
void pretend_on_event(Callback call) { callback = call; }
int64_t pretend_launches() { return launches; }
int64_t pretend_allocated(int index) { return stats[index].now; }
int64_t pretend_peak(int index) { return stats[index].peak; }
int64_t pretend_allocations(int index) { return stats[index].allocations; }
void pretend_reset_peak(int index) { stats[index].peak = stats[index].now.load(); }
void pretend_limit(int index, int64_t bytes) { stats[index].limit = bytes; }
}
