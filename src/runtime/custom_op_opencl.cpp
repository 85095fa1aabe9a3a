// The few declarations of OpenCL 1.1 that are needed stand here, so that neither the build nor the library depends on OpenCL.
#include "runtime/custom_op_opencl.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace orknn::runtime {
namespace {
using Object = void*;  // cl_platform_id, cl_device_id, cl_context, ...
constexpr int32_t kSuccess = 0, kInvalidValue = -30, kInvalidProperty = -64, kNoMemory = -4;
constexpr uint64_t kAllDevices = 0xFFFFFFFF, kGpu = 1 << 2, kUseHostPointer = 1 << 3;
constexpr uint32_t kDeviceType = 0x1000, kDeviceUnifiedMemory = 0x1035, kBuildLog = 0x1183;
constexpr intptr_t kContextPlatform = 0x1084, kImportType = 0x40B2, kImportHost = 0x40B3, kImportDmaBuf = 0x40B4;

struct Library {
  int32_t (*get_platforms)(uint32_t, Object*, uint32_t*);
  int32_t (*get_devices)(Object, uint64_t, uint32_t, Object*, uint32_t*);
  int32_t (*get_device_info)(Object, uint32_t, size_t, void*, size_t*);
  Object (*create_context)(const intptr_t*, uint32_t, const Object*, void (*)(const char*, const void*, size_t, void*), void*,
                           int32_t*);
  Object (*create_queue)(Object, Object, uint64_t, int32_t*);
  Object (*create_program)(Object, uint32_t, const char**, const size_t*, int32_t*);
  int32_t (*build_program)(Object, uint32_t, const Object*, const char*, void (*)(Object, void*), void*);
  int32_t (*get_build_info)(Object, Object, uint32_t, size_t, void*, size_t*);
  Object (*create_kernel)(Object, const char*, int32_t*);
  Object (*create_buffer)(Object, uint64_t, size_t, void*, int32_t*);
  int32_t (*on_release)(Object, void (*)(Object, void*), void*);
  int32_t (*release_context)(Object);
  int32_t (*release_queue)(Object);
  int32_t (*release_program)(Object);
  int32_t (*release_kernel)(Object);
  // Only GPUs of ARM have it; nullptr elsewhere.
  Object (*import_memory)(Object, uint64_t, const intptr_t*, void*, size_t, int32_t*);

  Object platform = nullptr, device = nullptr;
  std::string problem;  // empty: everything above is set

  Library();

 private:
  bool load(void* handle);
  void choose_device();
};

Library::Library() {
  // OPENRKNN_OPENCL names another library than the system's.
  const char* chosen = secure_getenv("OPENRKNN_OPENCL");
  std::vector<std::string> names{"libOpenCL.so.1", "libOpenCL.so", "libmali.so.1", "libmali.so"};
  if (chosen && *chosen) names = {chosen};
  for (const std::string& name : names) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) continue;
    if (load(handle)) {
      problem.clear();
      choose_device();
      return;
    }
    dlclose(handle);
    problem += (problem.empty() ? "" : "; ") + name + " is not an OpenCL library";
  }
  if (!problem.empty()) return;
  problem = "no OpenCL library was found (";
  for (size_t i = 0; i < names.size(); ++i) problem += (i ? ", " : "") + names[i];
  problem += "); on a PC the Debian packages ocl-icd-libopencl1 and pocl-opencl-icd have one";
}

bool Library::load(void* handle) {
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    return function != nullptr;
  };
  find(import_memory, "clImportMemoryARM");
  return find(get_platforms, "clGetPlatformIDs") && find(get_devices, "clGetDeviceIDs") &&
         find(get_device_info, "clGetDeviceInfo") && find(create_context, "clCreateContext") &&
         find(create_queue, "clCreateCommandQueue") && find(create_program, "clCreateProgramWithSource") &&
         find(build_program, "clBuildProgram") && find(get_build_info, "clGetProgramBuildInfo") &&
         find(create_kernel, "clCreateKernel") && find(create_buffer, "clCreateBuffer") &&
         find(on_release, "clSetMemObjectDestructorCallback") && find(release_context, "clReleaseContext") &&
         find(release_queue, "clReleaseCommandQueue") && find(release_program, "clReleaseProgram") &&
         find(release_kernel, "clReleaseKernel");
}

// Tensors are the host's memory: a device that shares it comes first, and of those a GPU.
void Library::choose_device() {
  uint32_t count = 0;
  std::vector<Object> platforms;
  if (get_platforms(0, nullptr, &count) == kSuccess && count > 0) {
    platforms.resize(count);
    if (get_platforms(count, platforms.data(), &count) != kSuccess) platforms.clear();
  }
  int best = -1;
  for (Object p : platforms) {
    uint32_t devices_count = 0;
    if (get_devices(p, kAllDevices, 0, nullptr, &devices_count) != kSuccess || devices_count == 0) continue;
    std::vector<Object> devices(devices_count);
    if (get_devices(p, kAllDevices, devices_count, devices.data(), nullptr) != kSuccess) continue;
    for (Object d : devices) {
      uint64_t type = 0;
      uint32_t unified = 0;
      get_device_info(d, kDeviceType, sizeof type, &type, nullptr);
      get_device_info(d, kDeviceUnifiedMemory, sizeof unified, &unified, nullptr);
      const int rank = (unified ? 2 : 0) + (type & kGpu ? 1 : 0);
      if (rank <= best) continue;
      best = rank;
      platform = p;
      device = d;
    }
  }
  if (!device) problem = "OpenCL has no device on this machine; on a PC the Debian package pocl-opencl-icd has one";
}

// Never unloaded: programs keep objects of it until their static destructors run.
Library& library() {
  static Library* const instance = new Library;
  return *instance;
}

// What the compiler said, as one line.
std::string build_log(Object program) {
  size_t size = 0;
  if (library().get_build_info(program, library().device, kBuildLog, 0, nullptr, &size) != kSuccess || size == 0) return {};
  std::string text(size, '\0');
  if (library().get_build_info(program, library().device, kBuildLog, size, text.data(), nullptr) != kSuccess) return {};
  while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
  for (size_t at = 0; (at = text.find('\n', at)) != text.npos; at += 2) text.replace(at, 1, "; ");
  return text;
}

struct Mapping {
  void* data;
  size_t bytes;
};
}  // namespace

struct OpenClProgram::Objects {
  Object context = nullptr, queue = nullptr, program = nullptr;
  std::string kernel;
  std::vector<Object> kernels;

  ~Objects() {
    for (Object k : kernels) library().release_kernel(k);
    if (program) library().release_program(program);
    if (queue) library().release_queue(queue);
    if (context) library().release_context(context);
  }
};

bool OpenClProgram::is_available(std::string& problem) {
  problem = library().problem;
  return problem.empty();
}

OpenClProgram::~OpenClProgram() = default;

Result<std::unique_ptr<OpenClProgram>> OpenClProgram::build(const std::string& source, const std::string& options,
                                                            const std::string& kernel) {
  Library& cl = library();
  const auto failed = [](const std::string& what, int32_t code) {
    return Status::error(Code::Fail, what + " (OpenCL error " + std::to_string(code) + ")");
  };
  std::unique_ptr<OpenClProgram> made(new OpenClProgram());
  made->objects_ = std::make_unique<Objects>();
  Objects& o = *made->objects_;
  o.kernel = kernel;
  int32_t code = kSuccess;
  const intptr_t properties[] = {kContextPlatform, reinterpret_cast<intptr_t>(cl.platform), 0};
  o.context = cl.create_context(properties, 1, &cl.device, nullptr, nullptr, &code);
  if (!o.context) return failed("OpenCL gives no context", code);
  o.queue = cl.create_queue(o.context, cl.device, 0, &code);
  if (!o.queue) return failed("OpenCL gives no command queue", code);
  const char* text = source.data();
  const size_t length = source.size();
  o.program = cl.create_program(o.context, 1, &text, &length, &code);
  if (!o.program) return failed("OpenCL does not take the kernel source", code);
  code = cl.build_program(o.program, 1, &cl.device, options.c_str(), nullptr, nullptr);
  if (code != kSuccess) return failed("the kernel source does not compile: " + build_log(o.program), code);
  return made;
}

Result<rknn_gpu_op_context> OpenClProgram::make_kernel() {
  Objects& o = *objects_;
  int32_t code = kSuccess;
  o.kernels.reserve(o.kernels.size() + 1);
  const Object kernel = library().create_kernel(o.program, o.kernel.c_str(), &code);
  if (!kernel)
    return Status::error(Code::Fail,
                         "the kernel source has no kernel '" + o.kernel + "' (OpenCL error " + std::to_string(code) + ")");
  o.kernels.push_back(kernel);
  return rknn_gpu_op_context{o.context, o.queue, kernel};
}

}  // namespace orknn::runtime

// Boards import tensors by their file descriptor with this function of ARM's OpenCL. Programs written for boards link with the
// runtime before OpenCL, so they find this one, and run where OpenCL has no such function: the same memory becomes a buffer.
extern "C" __attribute__((visibility("default"))) void* clImportMemoryARM(void* context, uint64_t flags,
                                                                          const intptr_t* properties, void* memory, size_t size,
                                                                          int32_t* error) {
  using namespace orknn::runtime;
  int32_t ignored = 0;
  int32_t& code = error ? *error : ignored;
  const auto refuse = [&](int32_t why) -> void* {
    code = why;
    return nullptr;
  };
  Library& cl = library();
  if (!cl.problem.empty() || !memory || size == 0) return refuse(kInvalidValue);
  if (cl.import_memory) return cl.import_memory(context, flags, properties, memory, size, error);
  intptr_t type = kImportHost;
  for (const intptr_t* p = properties; p && p[0]; p += 2) {
    if (p[0] != kImportType) return refuse(kInvalidProperty);
    type = p[1];
  }
  if (type == kImportHost) return cl.create_buffer(context, flags | kUseHostPointer, size, memory, &code);
  if (type != kImportDmaBuf) return refuse(kInvalidProperty);
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, *static_cast<const int*>(memory), 0);
  if (mapped == MAP_FAILED) return refuse(kInvalidValue);
  void* buffer = cl.create_buffer(context, flags | kUseHostPointer, size, mapped, &code);
  auto* mapping = buffer ? new (std::nothrow) Mapping{mapped, size} : nullptr;
  if (!mapping) {
    if (!buffer) munmap(mapped, size);
    return buffer ? buffer : refuse(code == kSuccess ? kNoMemory : code);
  }
  cl.on_release(
      buffer,
      [](void*, void* data) {
        auto* m = static_cast<Mapping*>(data);
        munmap(m->data, m->bytes);
        delete m;
      },
      mapping);
  return buffer;
}
