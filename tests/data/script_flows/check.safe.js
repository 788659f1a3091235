const fs=require('fs'), path=require('path');
app.get('/', (req, res) => { const p = path.resolve(ROOT, req.params.name);
if (!p.startsWith(ROOT)) return res.sendStatus(400);
fs.readFile(p, (e,d)=>res.send(d));
});
