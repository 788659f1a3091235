const fs=require('fs'), path=require('path');
app.get('/', (req, res) => { const p = path.join(ROOT, req.params.name);
fs.readFile(p, (e,d)=>res.send(d));
});
