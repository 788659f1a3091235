// What programs find outside their imports, where the packages that declare it are not at hand: of any type.
declare module "*";
declare var process: any, Buffer: any, require: any, module: any, exports: any, global: any;
declare var __dirname: string, __filename: string, setImmediate: any, clearImmediate: any;
declare var describe: any, it: any, test: any, expect: any, suite: any, before: any, after: any;
declare var beforeEach: any, afterEach: any, beforeAll: any, afterAll: any, jest: any, vi: any;
declare var React: any, Deno: any, Bun: any, chrome: any, browser: any, __DEV__: any;
// Members of all objects, which the global one has as well.
declare var hasOwnProperty: any, isPrototypeOf: any, propertyIsEnumerable: any, toLocaleString: any, valueOf: any;
type Buffer = any; type BufferEncoding = any;
declare namespace NodeJS {
  type Timeout = any; type Timer = any; type Immediate = any; type ErrnoException = any; type ProcessEnv = any;
  type ReadableStream = any; type WritableStream = any; type Signals = any; type Platform = any; type Dict<T> = any;
  type EventEmitter = any; type ReadWriteStream = any; type ReadStream = any; type WriteStream = any; type Process = any;
  type ArrayBufferView = any; type TypedArray = any; type MemoryUsage = any; type CpuUsage = any; type Global = any;
}
declare namespace JSX {
  type Element = any; type ElementType = any;
  interface ElementChildrenAttribute { children: {} }
  interface IntrinsicAttributes { key?: any; ref?: any }
  interface IntrinsicElements { [name: string]: any }
}
interface ImportMeta { [name: string]: any }
interface ErrorConstructor { captureStackTrace: any; prepareStackTrace: any; stackTraceLimit: any }
// Timers of Node, which are numbers to the browser.
interface Number { ref: any; unref: any; hasRef: any; refresh: any }
interface RequestInit { dispatcher?: any; duplex?: any }
interface Window { [name: string]: any }
interface Navigator { [name: string]: any }
